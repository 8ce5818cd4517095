// tests/bench/timing.hpp: medians of repeated runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

/// Median seconds of `repeats` runs of f, after one warm-up run.
template <class F>
double median_seconds(int repeats, F&& f) {
  f();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    f();
    seconds.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}
