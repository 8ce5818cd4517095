// tests/bench/rows.hpp: a program of rows to time, which turns.py asks for one after the other.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

/// What is timed: `run`, `repeats` times a turn, and the bytes that it has to move (each leaf once, each result once; 0
/// for none).
struct row {
  std::string name;
  int repeats;
  double bytes;
  std::function<void()> run;
  std::function<void()> before = [] {};  // not timed, before every run
};

/// Median seconds of a row's runs in one turn. Runs of 20 ms go before and do not count: a processor that has idled is
/// slow at first, and some systems put threads that have slept on one processor.
inline double seconds_of(const row& r) {
  using clock = std::chrono::steady_clock;
  std::vector<double> seconds;
  const auto start = clock::now();
  do {
    r.before();
    r.run();
  } while (clock::now() - start < std::chrono::milliseconds(20));
  for (int i = 0; i < r.repeats; ++i) {
    r.before();
    const auto begin = clock::now();
    r.run();
    seconds.push_back(std::chrono::duration<double>(clock::now() - begin).count());
  }
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}

/// Names the rows, a line each ("name TAB bytes") and an empty one; then runs the row named by each line read and
/// prints its milliseconds, until the input ends.
inline int serve(const std::vector<row>& rows) {
  for (const row& r : rows) std::printf("%s\t%.0f\n", r.name.c_str(), r.bytes);
  std::printf("\n");
  std::fflush(stdout);
  for (std::string name; std::getline(std::cin, name);) {
    const auto found = std::find_if(rows.begin(), rows.end(), [&](const row& r) { return r.name == name; });
    if (found == rows.end()) {
      std::fprintf(stderr, "no row named '%s'\n", name.c_str());
      return 1;
    }
    std::printf("%.4f\n", 1e3 * seconds_of(*found));
    std::fflush(stdout);
  }
  return 0;
}
