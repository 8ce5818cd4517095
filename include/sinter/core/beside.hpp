// sinter/core/beside.hpp: whether the copies of this thread run beside the program or in order with it.
#pragma once

#include <cstdint>

namespace sinter::detail {

/// True on threads that exist for copies alone. Somebody else waits for such a thread, so a device may run its copies
/// out of order with its other work.
inline bool& copies_run_beside() {
  static thread_local bool beside = false;
  return beside;
}

/// The block of an arena that such a thread was given last, and nobody has used since.
struct given_block {
  const void* at = nullptr;
  std::uint64_t freed = 0;  ///< when it was freed before: caching_arena::frees() was this then; 0: it is new
};
inline given_block& given_beside() {
  static thread_local given_block last;
  return last;
}

/// Makes it true for a scope.
class copying_beside {
 public:
  copying_beside() : before_(copies_run_beside()) { copies_run_beside() = true; }
  copying_beside(const copying_beside&) = delete;
  copying_beside& operator=(const copying_beside&) = delete;
  ~copying_beside() { copies_run_beside() = before_; }

 private:
  bool before_;
};

}  // namespace sinter::detail
