// sinter/cpu/detail/thread_topology.hpp: which processors a pool may use, and how its threads wait.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#if defined(__linux__)
#include <sched.h>
#endif

#include "sinter/core/error.hpp"

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

#if defined(__linux__)

SINTER_SHARED cpu_set_t usable_processors() noexcept;

/// The processors of a NUMA node, from a list such as "0-3,8-11"; empty if the machine has no such node.
SINTER_SHARED cpu_set_t node_processors(int node) noexcept;

/// The node's processors that this process may use; all usable ones where that leaves none.
SINTER_SHARED cpu_set_t node_or_usable_processors(int node) noexcept;

SINTER_SHARED void pin_to_node(int node) noexcept;

SINTER_SHARED int usable_processor_count(int node) noexcept;

#else

inline void pin_to_node(int) noexcept {}
inline int usable_processor_count(int) noexcept { return 0; }

#endif

/// SINTER_NUM_THREADS if it is set, else the usable processors (of the node, if it is not negative).
SINTER_SHARED int default_threads(int node);

#if SINTER_DEFINES

SINTER_SHARED cpu_set_t usable_processors() noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) CPU_ZERO(&set);
  return set;
}

SINTER_SHARED cpu_set_t node_processors(int node) noexcept {
  cpu_set_t set;
  CPU_ZERO(&set);
  char path[64];
  std::snprintf(path, sizeof path, "/sys/devices/system/node/node%d/cpulist", node);
  std::FILE* const file = std::fopen(path, "r");
  if (file == nullptr) return set;
  int first = 0;
  while (std::fscanf(file, "%d", &first) == 1) {
    int last = first, separator = std::fgetc(file);
    if (separator == '-') {
      if (std::fscanf(file, "%d", &last) != 1) break;
      separator = std::fgetc(file);
    }
    for (int i = first; i <= last && i < CPU_SETSIZE; ++i) CPU_SET(static_cast<unsigned>(i), &set);
    if (separator != ',') break;
  }
  std::fclose(file);
  return set;
}

SINTER_SHARED cpu_set_t node_or_usable_processors(int node) noexcept {
  const cpu_set_t usable = usable_processors();
  if (node < 0) return usable;
  const cpu_set_t local = node_processors(node);
  cpu_set_t both;
  CPU_AND(&both, &usable, &local);
  return CPU_COUNT(&both) == 0 ? usable : both;
}

SINTER_SHARED void pin_to_node(int node) noexcept {
  const cpu_set_t set = node_or_usable_processors(node);
  if (CPU_COUNT(&set) > 0) sched_setaffinity(0, sizeof set, &set);
}

SINTER_SHARED int usable_processor_count(int node) noexcept {
  const cpu_set_t set = node_or_usable_processors(node);
  return CPU_COUNT(&set);
}

SINTER_SHARED int default_threads(int node) {
  if (const char* const text = std::getenv("SINTER_NUM_THREADS"); text != nullptr && *text != '\0') {
    char* end = nullptr;
    const long threads = std::strtol(text, &end, 10);
    if (*end == '\0' && threads >= 1 && threads <= most_threads) return static_cast<int>(threads);
    sinter::detail::refuse<value_error>({"the environment variable SINTER_NUM_THREADS is '", text,
                                         "'; set it to a number from 1 to ", most_threads, ", or not at all"});
  }
  const int usable = usable_processor_count(node);
  if (usable > 0) return usable;
  const unsigned threads = std::thread::hardware_concurrency();
  return threads == 0 ? 1 : static_cast<int>(threads);
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl::detail
