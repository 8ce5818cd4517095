// tests/bench/mlp.cpp: one training step of an MLP 784-2048-2048-2048-10; prints milliseconds.
//
// Usage: mlp THREADS BATCH. A step is forward, loss, backward and plain SGD, the input already in memory.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <sinter/sinter.hpp>

#include "timing.hpp"

using namespace sinter;

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const index_t batch = argc > 2 ? std::atoi(argv[2]) : 128;
  set_num_threads(threads);
  generator gen(1);
  const index_t sizes[] = {784, 2048, 2048, 2048, 10};
  std::vector<variable<float, 2>> w;
  std::vector<variable<float, 1>> b;
  for (int i = 0; i < 4; ++i) {
    w.emplace_back(eval(randn<float>(gen, {sizes[i + 1], sizes[i]}) * (1.f / std::sqrt(static_cast<float>(sizes[i])))));
    b.emplace_back(zeros<float>({sizes[i + 1]}));
  }
  const auto x = randn<float>(gen, {batch, 784});
  const auto labels = eval(cast<std::int64_t>(rand<float>(gen, {batch}) * 10.f));
  float loss_value = 0;
  const double seconds = median_seconds(batch > 512 ? 11 : 31, [&] {
    const variable h1 = relu(linear(x, w[0], b[0]));
    const variable h2 = relu(linear(h1, w[1], b[1]));
    const variable h3 = relu(linear(h2, w[2], b[2]));
    const variable loss = cross_entropy(linear(h3, w[3], b[3]), labels);
    loss.backward();
    loss_value = loss.item();
    for (auto& p : w) {
      p.value() -= 0.01f * p.grad();
      p.zero_grad();
    }
    for (auto& p : b) {
      p.value() -= 0.01f * p.grad();
      p.zero_grad();
    }
  });
  if (!std::isfinite(loss_value)) return 1;
  std::printf("sinter mlp batch %d\t%.3f\t0\n", static_cast<int>(batch), seconds * 1e3);
}
