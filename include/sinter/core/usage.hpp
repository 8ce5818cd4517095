// sinter/core/usage.hpp: counters of work and of copies, which run while a meter lives; see parallel/usage.hpp.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "sinter/core/device.hpp"

namespace sinter::detail {

/// How many meters live. Nothing is counted while there is none.
inline std::atomic<int>& usage_meters() {
  static constinit std::atomic<int> meters{0};
  return meters;
}
inline bool usage_is_measured() { return usage_meters().load(std::memory_order_relaxed) > 0; }

/// Sums since the program began. Read them twice for what lies between.
struct usage_counter {
  std::atomic<std::int64_t> nanoseconds{0}, bytes{0}, times{0};

  void add(std::chrono::steady_clock::time_point begin, std::int64_t n) {
    const auto took = std::chrono::steady_clock::now() - begin;
    nanoseconds.fetch_add(std::chrono::nanoseconds(took).count(), std::memory_order_relaxed);
    bytes.fetch_add(n, std::memory_order_relaxed);
    times.fetch_add(1, std::memory_order_relaxed);
  }
};

/// The copies from one device to another.
template <device From, device To>
usage_counter& copies_between() {
  static constinit usage_counter copies;
  return copies;
}

}  // namespace sinter::detail
