// sinter/core/platform.hpp: memory, processors, processes, clocks and terminals, as operating systems have them. Files:
// io/descriptor.hpp; sockets: ranks/socket/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "sinter/config.hpp"

#if defined(_WIN32)
#include <malloc.h>
#endif

#if SINTER_DEFINES
#if defined(__linux__)
#include <sched.h>
#include <sys/mman.h>
#endif
#if defined(_WIN32)
#include <io.h>
#include <process.h>

#include <chrono>
#else
#include <pthread.h>
#include <time.h>
#include <unistd.h>
#endif
#endif  // SINTER_DEFINES

// 1: a process may fork.
#if defined(_WIN32)
#define SINTER_FORKS 0
#else
#define SINTER_FORKS 1
#endif

namespace sinter::detail {

/// `size` bytes from a multiple of `alignment`, of which size must be a multiple too; null where there is no memory.
inline void* take_aligned(std::size_t alignment, std::size_t size) noexcept {
#if defined(_WIN32)
  return ::_aligned_malloc(size, alignment);
#else
  return std::aligned_alloc(alignment, size);
#endif
}

/// Gives back what take_aligned() took; nothing where that is null.
inline void give_aligned(void* memory) noexcept {
#if defined(_WIN32)
  ::_aligned_free(memory);
#else
  std::free(memory);
#endif
}

/// Asks the system to use large pages for this memory. It may be deaf.
SINTER_SHARED void ask_for_huge_pages(void* memory, std::size_t size) noexcept;

/// Of a clock that never goes back; what std::chrono::steady_clock says. <chrono> is slow to compile.
SINTER_SHARED std::int64_t steady_nanoseconds() noexcept;

SINTER_SHARED int process_number() noexcept;

/// Writes the name of this machine, cut to so many bytes with the 0 at its end; "localhost" where the system does not
/// tell.
SINTER_SHARED void host_name(char* to, std::size_t room) noexcept;

/// True when the stream is a terminal.
SINTER_SHARED bool is_terminal(std::FILE* stream) noexcept;

/// Bytes of a core's second cache; 0 where the system does not tell.
SINTER_SHARED std::size_t second_cache() noexcept;

/// How many processors this process may use, of a NUMA node if `node` is not negative and the machine has it; 0 where
/// the system does not tell.
SINTER_SHARED int usable_processor_count(int node) noexcept;

/// Keeps the calling thread on the processors of a node, where the system can do that.
SINTER_SHARED void pin_to_node(int node) noexcept;

#if SINTER_FORKS
/// fork() calls `before` in the parent, and one of the others in each process. Errors: those of pthread_atfork.
SINTER_SHARED int tell_of_forks(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept;
#endif

#if SINTER_DEFINES

SINTER_SHARED void ask_for_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size) noexcept {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  ::madvise(memory, size, MADV_HUGEPAGE);
#endif
}

SINTER_SHARED std::int64_t steady_nanoseconds() noexcept {
#if defined(_WIN32)
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
#else
  ::timespec now;
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
#endif
}

SINTER_SHARED int process_number() noexcept {
#if defined(_WIN32)
  return ::_getpid();
#else
  return static_cast<int>(::getpid());
#endif
}

SINTER_SHARED void host_name(char* to, std::size_t room) noexcept {
#if defined(_WIN32)
  const char* const name = std::getenv("COMPUTERNAME");
  const bool told = name != nullptr;
  if (told) std::snprintf(to, room, "%s", name);
#else
  const bool told = ::gethostname(to, room) == 0;
  to[room - 1] = 0;  // a name that was cut may have none
#endif
  if (!told || to[0] == 0) std::snprintf(to, room, "localhost");
}

SINTER_SHARED bool is_terminal(std::FILE* stream) noexcept {
#if defined(_WIN32)
  return ::_isatty(::_fileno(stream)) != 0;
#else
  return ::isatty(::fileno(stream)) != 0;
#endif
}

SINTER_SHARED std::size_t second_cache() noexcept {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  const long bytes = ::sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
#else
  return 0;
#endif
}

#if defined(__linux__)

/// The processors of a NUMA node, from a list such as "0-3,8-11"; empty if the machine has no such node.
inline cpu_set_t node_processors(int node) noexcept {
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

/// The node's processors that this process may use; all usable ones where that leaves none, or node is negative.
inline cpu_set_t usable_processors(int node) noexcept {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) CPU_ZERO(&usable);
  if (node < 0) return usable;
  const cpu_set_t local = node_processors(node);
  cpu_set_t both;
  CPU_AND(&both, &usable, &local);
  return CPU_COUNT(&both) == 0 ? usable : both;
}

SINTER_SHARED int usable_processor_count(int node) noexcept {
  const cpu_set_t set = usable_processors(node);
  return CPU_COUNT(&set);
}

SINTER_SHARED void pin_to_node(int node) noexcept {
  const cpu_set_t set = usable_processors(node);
  if (CPU_COUNT(&set) > 0) sched_setaffinity(0, sizeof set, &set);
}

#else

SINTER_SHARED int usable_processor_count(int) noexcept { return 0; }
SINTER_SHARED void pin_to_node(int) noexcept {}

#endif

#if SINTER_FORKS
SINTER_SHARED int tell_of_forks(void (*before)(), void (*in_parent)(), void (*in_child)()) noexcept {
  return ::pthread_atfork(before, in_parent, in_child);
}
#endif

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
