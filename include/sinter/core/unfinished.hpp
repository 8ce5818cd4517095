// sinter/core/unfinished.hpp: the assignments of this thread that have not run yet, and what became of their targets
// meanwhile.
#pragma once

#include "sinter/core/storage.hpp"

namespace sinter::detail {

/// The target of an assignment from its construction until it runs. All of a thread form a list, which is empty nearly
/// always.
class assignment_target {
 public:
  /// `name`: the tensor on the left side, null for a temporary view. `memory`: what that shows.
  assignment_target(void* name, const storage_ptr& memory) : name_(name), memory_(memory), next_(first_) {
    first_ = this;
  }
  assignment_target(const assignment_target&) = delete;
  assignment_target& operator=(const assignment_target&) = delete;
  ~assignment_target() {
    assignment_target** link = &first_;
    while (*link != this) link = &(*link)->next_;
    *link = next_;
  }

  /// The tensor on the left side; null for a view, and once it was destroyed.
  void* name() const noexcept { return name_; }
  /// True once this thread wrote to the memory, or the name was given other memory, which it shows `now`.
  bool is_stale(const storage_ptr& now) const noexcept { return written_ || now.get() != memory_.get(); }

  /// Tells the assignments to a tensor that it is destroyed.
  static void end_of(const void* tensor) noexcept {
    if (first_ != nullptr) [[unlikely]]
      note_end(tensor);
  }
  /// Tells the assignments that wait that this thread writes to `memory`.
  static void write_to(const storage& memory) noexcept {
    for (assignment_target* a = first_; a != nullptr; a = a->next_)
      a->written_ = a->written_ || a->memory_.get() == &memory;
  }

 private:
  SINTER_COLD static void note_end(const void* tensor) noexcept {
    for (assignment_target* a = first_; a != nullptr; a = a->next_)
      if (a->name_ == tensor) a->name_ = nullptr;
  }

  static inline thread_local assignment_target* first_ = nullptr;
  void* name_;
  storage_ptr memory_;
  assignment_target* next_;
  bool written_ = false;
};

/// Notes a write in place: the tape compares versions.
inline void note_write(storage& memory) noexcept {
  memory.version.fetch_add(1, std::memory_order_relaxed);
  assignment_target::write_to(memory);
}

}  // namespace sinter::detail
