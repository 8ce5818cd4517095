// sinter/core/usage.hpp: counters of work and of copies, which run while a meter lives; see parallel/usage.hpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "sinter/core/device.hpp"
#include "sinter/core/platform.hpp"

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
};

/// Adds the time of its life, and bytes, to a counter; to none if that is null.
class usage_clock {
 public:
  explicit usage_clock(usage_counter* counter, std::size_t bytes = 0) noexcept : counter_(counter), bytes_(bytes) {
    if (counter_ != nullptr) begin_ = steady_nanoseconds();
  }
  usage_clock(const usage_clock&) = delete;
  usage_clock& operator=(const usage_clock&) = delete;
  ~usage_clock() {
    if (counter_ != nullptr) count();
  }

 private:
  void count() noexcept;

  usage_counter* counter_;
  std::size_t bytes_;
  std::int64_t begin_ = 0;
};

/// The copies from one device to another.
template <device From, device To>
usage_counter& copies_between() {
  static constinit usage_counter copies;
  return copies;
}

#if SINTER_DEFINES

SINTER_SHARED void usage_clock::count() noexcept {
  counter_->nanoseconds.fetch_add(steady_nanoseconds() - begin_, std::memory_order_relaxed);
  counter_->bytes.fetch_add(static_cast<std::int64_t>(bytes_), std::memory_order_relaxed);
  counter_->times.fetch_add(1, std::memory_order_relaxed);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
