// tests/shortage.hpp: memory that runs out at a chosen allocation, of the heap or for an arena of the host. It replaces
// operator new, so one file of an executable includes it.
#pragma once

#include <sinter/core.hpp>

#include <atomic>
#include <cstdlib>
#include <new>
#include <utility>

namespace shortage {

inline constexpr long never = -1;
inline std::atomic<long> until_failure{never};  ///< allocations that still succeed
inline std::atomic<bool> fails_from_then_on{false};
inline std::atomic<long> failures{0};
inline std::atomic<long> living{0};  ///< blocks of operator new

inline bool fails() {
  long left = until_failure.load();
  while (left != never) {
    const long next = left > 0 ? left - 1 : fails_from_then_on ? 0 : never;
    if (!until_failure.compare_exchange_weak(left, next)) continue;
    if (left > 0) return false;
    ++failures;
    return true;
  }
  return false;
}
inline void* take(std::size_t alignment, std::size_t size) {
  void* p = nullptr;
  if (fails() || ::posix_memalign(&p, alignment, size != 0 ? size : 1) != 0) return nullptr;
  return p;
}
inline void* take_counted(std::size_t alignment, std::size_t size) {
  void* const p = take(alignment, size);
  living += p != nullptr;
  return p;
}
inline void* take_or_throw(std::size_t alignment, std::size_t size) {
  if (void* const p = take_counted(alignment, size)) return p;
  throw std::bad_alloc();
}
inline void give(void* p) noexcept {
  if (p != nullptr) --living;
  std::free(p);
}

}  // namespace shortage

extern "C" [[gnu::noinline]] void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  return shortage::take(alignment, size);
}
[[gnu::noinline]] void* operator new(std::size_t size) { return shortage::take_or_throw(16, size); }
[[gnu::noinline]] void* operator new(std::size_t size, std::align_val_t alignment) {
  return shortage::take_or_throw(static_cast<std::size_t>(alignment), size);
}
[[gnu::noinline]] void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return shortage::take_counted(16, size);
}
[[gnu::noinline]] void operator delete(void* p) noexcept { shortage::give(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { shortage::give(p); }
[[gnu::noinline]] void operator delete(void* p, const std::nothrow_t&) noexcept { shortage::give(p); }
[[gnu::noinline]] void operator delete(void* p, std::align_val_t) noexcept { shortage::give(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t, std::align_val_t) noexcept { shortage::give(p); }

namespace shortage {

/// While it lives, allocation number k from now on fails, and with `all` those after it.
struct period {
  period(long k, bool all) {
    fails_from_then_on = all;
    until_failure = k;
  }
  ~period() { until_failure = never; }
  period(const period&) = delete;
  period& operator=(const period&) = delete;
};

enum class outcome { failed, recovered, untouched };

/// f(), with allocation number k failing, from an empty cache.
template <class F>
outcome with_failure(long k, bool all, const F& f) {
  sinter::empty_cache<sinter::cpu>();
  sinter::empty_cache<sinter::numa<0>>();
  sinter::empty_cache<sinter::numa<1>>();
  sinter::empty_cache<sinter::numa<3>>();
  const long before = failures;
  const period now(k, all);
  try {
    f();
  } catch (const std::bad_alloc&) {
    return outcome::failed;
  } catch (const sinter::out_of_memory&) {
    return outcome::failed;
  }
  return failures == before ? outcome::untouched : outcome::recovered;
}

/// Blocks of operator new, and bytes of tensors.
inline std::pair<long, std::size_t> held() {
  using namespace sinter;
  return {living.load(), memory<cpu>().bytes_in_use + memory<numa<0>>().bytes_in_use + memory<numa<1>>().bytes_in_use +
                             memory<numa<3>>().bytes_in_use};
}

}  // namespace shortage
