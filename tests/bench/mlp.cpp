// tests/bench/mlp.cpp: one training step of an MLP 784-2048-2048-2048-10. Usage: mlp THREADS
//
// A step is forward, loss, backward and plain SGD, the input already in memory.
#include <cmath>
#include <cstdlib>
#include <vector>

#include <sinter/sinter.hpp>

#include "rows.hpp"

using namespace sinter;

namespace {

class network {
 public:
  explicit network(index_t batch) {
    generator gen(1);
    const index_t sizes[] = {784, 2048, 2048, 2048, 10};
    for (int i = 0; i < 4; ++i) {
      w_.emplace_back(
          eval(randn<float>(gen, {sizes[i + 1], sizes[i]}) * (1.f / std::sqrt(static_cast<float>(sizes[i])))));
      b_.emplace_back(zeros<float>({sizes[i + 1]}));
    }
    x_ = randn<float>(gen, {batch, 784});
    labels_ = eval(cast<std::int64_t>(rand<float>(gen, {batch}) * 10.f));
  }

  void step() {
    const variable h1 = relu(linear(x_, w_[0], b_[0]));
    const variable h2 = relu(linear(h1, w_[1], b_[1]));
    const variable h3 = relu(linear(h2, w_[2], b_[2]));
    const variable loss = cross_entropy(linear(h3, w_[3], b_[3]), labels_);
    loss.backward();
    if (!std::isfinite(loss.item())) std::exit(1);
    descend(w_);
    descend(b_);
  }

 private:
  template <class V>
  static void descend(V& parameters) {
    for (auto& p : parameters) {
      p.value() -= 0.01f * p.grad();
      p.zero_grad();
    }
  }

  std::vector<variable<float, 2>> w_;
  std::vector<variable<float, 1>> b_;
  tensor<float, 2> x_;
  tensor<std::int64_t, 1> labels_;
};

}  // namespace

int main(int argc, char** argv) {
  set_num_threads(argc > 1 ? std::atoi(argv[1]) : 1);
  network small(128), large(1024);
  return serve(
      {{"sinter mlp batch 128", 5, 0, [&] { small.step(); }}, {"sinter mlp batch 1024", 1, 0, [&] { large.step(); }}});
}
