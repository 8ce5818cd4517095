// tests/bench/timing.hpp: medians of repeated runs.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

/// Seconds that f takes.
template <class F>
double seconds_of(F&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Median seconds of `repeats` runs of f, after one warm-up run.
template <class F>
double median_seconds(int repeats, F&& f) {
  f();
  std::vector<double> seconds;
  for (int i = 0; i < repeats; ++i) seconds.push_back(seconds_of(f));
  return median(std::move(seconds));
}

/// The medians of f and g, run in turns, so that what disturbs one disturbs the other.
template <class F, class G>
std::pair<double, double> median_seconds_in_turns(int repeats, F&& f, G&& g) {
  f();
  g();
  std::vector<double> of_f, of_g;
  for (int i = 0; i < repeats; ++i) {
    of_f.push_back(seconds_of(f));
    of_g.push_back(seconds_of(g));
  }
  return {median(std::move(of_f)), median(std::move(of_g))};
}
