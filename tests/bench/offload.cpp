// tests/bench/offload.cpp: the part of a copy that prefetch() hides behind work, and the peak of memory for many tasks.
//
//   g++ -std=c++20 -O3 -march=native -I include -isystem /usr/include/eigen3 tests/bench/offload.cpp -pthread
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

#include <cstdio>
#include <vector>

#include "timing.hpp"

using namespace sinter;

namespace {

using place = numa<0>;
constexpr index_t width = 2048;

/// Parameters of tasks, one after the other, of which the device holds two.
class tasks {
 public:
  explicit tasks(generator& gen) : heads_(count, [&] { return nn::linear(width, width, gen); }, {.copies = 2}) {}
  /// The batch times the parameters of the next task.
  void step(const tensor<float, 2, place>& x, bool ahead) {
    const auto head = heads_.fetch(next_);
    next_ = (next_ + 1) % count;
    if (ahead) heads_.prefetch(next_);
    const auto y = eval(head(x));
  }

 private:
  static constexpr std::size_t count = 8;
  nn::offloaded<place, nn::linear<>> heads_;
  std::size_t next_ = 0;
};

void hide_copies() {
  generator gen(1);
  const nn::linear<float, place> here(width, width, gen);
  tasks late(gen), early(gen);
  const no_grad values_only;
  for (const index_t batch : {64, 128, 256}) {
    const auto x = randn<float, place>(gen, {batch, width});
    std::vector<double> work, after, beside;
    for (int turn = -8; turn < 100; ++turn) {
      const double a = milliseconds([&] { const auto y = eval(here(x)); });
      const double b = milliseconds([&] { late.step(x, false); });
      const double c = milliseconds([&] { early.step(x, true); });
      if (turn < 0) continue;  // memory is new
      work.push_back(a);
      after.push_back(b);
      beside.push_back(c);
    }
    const double copy = median(after) - median(work), left = median(beside) - median(work);
    std::printf("batch %d: work %.2f ms, copy %.2f ms; with prefetch %.2f ms: %.0f %% of the copy hidden\n",
                static_cast<int>(batch), median(work), copy, median(beside), 100 * (1 - left / copy));
  }
}

std::size_t peak_of(std::size_t tasks) {
  generator gen(1);
  const nn::linear<float, place> shared(width, width, gen);
  const nn::offloaded<place, nn::linear<>> heads(tasks, [&] { return nn::linear(width, 256, gen); }, {.copies = 2});
  optim::adam optimizer(shared);
  optimizer.add(heads);
  const auto x = randn<float, place>(gen, {64, width});
  const std::size_t before = memory<place>().bytes_in_use;
  reset_peak_memory<place>();
  for (std::size_t i = 0; i < 2 * tasks; ++i) {
    const auto head = heads.fetch(i % tasks);
    heads.prefetch((i + 1) % tasks);
    const variable loss = mean(square(head(tanh(shared(x)))));
    optimizer.zero_grad();
    loss.backward();
    optimizer.step();
  }
  return memory<place>().peak_bytes - before;
}

}  // namespace

int main() {
  set_num_threads(1);
  set_num_threads<place>(1);
  hide_copies();
  const auto two = static_cast<double>(peak_of(2)), many = static_cast<double>(peak_of(32));
  std::printf("peak of the device: 2 tasks %.2f MB, 32 tasks %.2f MB, %.3f times as much\n", 1e-6 * two, 1e-6 * many,
              many / two);
}
