// tests/bench/backward.cpp: backward of a long chain of small statements, where the walk itself is most of the work.
//
//   g++ -std=c++20 -O2 -march=native -I include -isystem /usr/include/eigen3 tests/bench/backward.cpp -pthread
//
// Prints the median of nanoseconds for a statement, of a pass alone and, where the library has one, with a listener of
// all leaves. Also compiles with headers from before there were listeners: what a pass costs without one is the ratio
// of two such programs, run in turns.
#include <cstdio>
#include <functional>
#include <vector>

#include <sinter/sinter.hpp>

#include "timing.hpp"

#if __has_include(<sinter/grad/listener.hpp>)
#define WITH_LISTENER 1
#endif

using namespace sinter;

namespace {

constexpr int statements = 20000, leaves = 100;

struct chain {
  std::vector<variable<float, 1>> w;
  variable<float, 1> y;

  explicit chain(int n) {
    for (int i = 0; i < leaves; ++i) w.emplace_back(ones<float>({1}));
    y = w[0];
    for (int i = 0; i < n; ++i) y = y * w[static_cast<std::size_t>(i * leaves / n)];
  }
};

/// Nanoseconds for a statement.
template <class F>
double of_statement(const F& backward) {
  std::vector<double> times;
  for (int turn = 0; turn < 31; ++turn) {
    const chain c(statements);
    times.push_back(1e6 * milliseconds([&] { backward(c); }) / statements);
  }
  return median(times);
}

}  // namespace

int main() {
  set_num_threads(1);
  const auto seed = ones<float>({1});
  std::printf("%.1f ns", of_statement([&](const chain& c) { c.y.backward(seed); }));
#if WITH_LISTENER
  long told = 0;
  std::printf(", with a listener %.1f ns", of_statement([&](const chain& c) {
                gradient_listener listener;
                for (const auto& w : c.w) listener.add(w, [&told] { ++told; });
                c.y.backward(seed, listener);
              }));
#endif
  std::printf("\n");
}
