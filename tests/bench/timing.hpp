// tests/bench/timing.hpp: how the benchmarks of parallel/ time a piece of work.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

template <class F>
double milliseconds(const F& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
