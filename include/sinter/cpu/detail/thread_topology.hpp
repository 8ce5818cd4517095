// sinter/cpu/detail/thread_topology.hpp: which processors a pool may use, and how its threads wait.
#pragma once

#include <cstdlib>
#include <string>
#include <thread>

#include "sinter/core/error.hpp"
#include "sinter/core/platform.hpp"

namespace sinter::cpu_impl::detail {

inline constexpr int most_threads = 4096;

inline void pause_processor() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Waiting that begins cheap and quick: `spin` returns true for about 100 microseconds, then says false, sleep.
class backoff {
 public:
  bool spin() noexcept {
    if (step_ == pausing_steps + yielding_steps) return false;
    if (++step_ > pausing_steps) std::this_thread::yield();
    else
      for (int i = 0; i < pauses_per_step; ++i) pause_processor();
    return true;
  }

 private:
  // A pause takes 10 to 140 cycles, depending on the processor; a yield with nobody waiting about 0.4 us.
  static constexpr int pauses_per_step = 4, pausing_steps = 128, yielding_steps = 384;
  int step_ = 0;
};

/// SINTER_NUM_THREADS if it is set, else the usable processors (of the node, if it is not negative).
SINTER_SHARED int default_threads(int node);

#if SINTER_DEFINES

SINTER_SHARED int default_threads(int node) {
  if (const char* const text = std::getenv("SINTER_NUM_THREADS"); text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long threads = std::strtol(text, &end, 10);
    if (*end == '\0' && threads >= 1 && threads <= most_threads) return static_cast<int>(threads);
    sinter::detail::refuse<value_error>({"the environment variable SINTER_NUM_THREADS is '", text,
                                         "'; set it to a number from 1 to ", most_threads, ", or not at all"});
  }
  const int usable = sinter::detail::usable_processor_count(node);
  if (usable > 0) return usable;
  const unsigned threads = std::thread::hardware_concurrency();
  return threads == 0 ? 1 : static_cast<int>(threads);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl::detail
