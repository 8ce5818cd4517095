// sinter/core/undo.hpp: what a computation has changed, to be put back where it fails.
#pragma once

#include <exception>
#include <span>
#include <utility>

#include "sinter/core/capture.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/unfinished.hpp"

namespace sinter::detail {

/// Something that a computation is about to change, as it is before. To undo it a second time, or where nothing was
/// changed after all, does no harm.
struct change {
  virtual ~change() = default;
  virtual void undo() noexcept = 0;
  const void* object = nullptr;  ///< what undo() writes to, if it may end before; see undo_scope::forget
  change* older = nullptr;
};

/// Changes, the newest first.
class change_list {
 public:
  change_list() = default;
  change_list(change_list&& other) noexcept
      : newest_(std::exchange(other.newest_, nullptr)), oldest_(std::exchange(other.oldest_, nullptr)) {}
  change_list& operator=(change_list&&) = delete;
  ~change_list() { drop(); }

  void add(owned_ptr<change> c) noexcept {
    change* const one = c.release();
    one->older = newest_;
    newest_ = one;
    if (oldest_ == nullptr) oldest_ = one;
  }
  /// Those of `newer` come before these.
  void add(change_list&& newer) noexcept {
    if (newer.newest_ == nullptr) return;
    newer.oldest_->older = newest_;
    if (oldest_ == nullptr) oldest_ = newer.oldest_;
    newest_ = std::exchange(newer.newest_, nullptr);
    newer.oldest_ = nullptr;
  }
  void undo() noexcept;
  void drop() noexcept;
  const change* newest() const noexcept { return newest_; }
  void forget(const void* object) noexcept;

 private:
  change *newest_ = nullptr, *oldest_ = nullptr;
};

/// While one is alive, this thread notes what it changes in buffers of modules and in generators, and if asked for in
/// gradients. What was not kept when the scope ends is put back. Scopes may nest.
///
///     undo_scope changes;
///     y = run();       // what it throws leaves all as it was
///     changes.keep();
class [[nodiscard]] undo_scope {
 public:
  // Out of line, as each module call has one.
  undo_scope() noexcept;
  explicit undo_scope(bool gradients) noexcept;
  undo_scope(const undo_scope&) = delete;
  undo_scope& operator=(const undo_scope&) = delete;
  ~undo_scope();

  /// Null where this thread notes nothing.
  static undo_scope*& current() noexcept {
    static thread_local constinit undo_scope* scope = nullptr;
    return scope;
  }
  /// Null where this thread notes no gradients.
  static undo_scope* of_gradients() noexcept {
    undo_scope* const scope = current();
    return scope != nullptr && scope->with_gradients_ ? scope : nullptr;
  }

  /// What was noted so far has ended well: it belongs to the scope around, or is final where there is none.
  void keep() noexcept;
  /// The same; it belongs to whoever holds the list.
  change_list take() noexcept { return std::move(changes_); }
  void add(owned_ptr<change> c) noexcept { changes_.add(std::move(c)); }
  void add(change_list&& list) noexcept { changes_.add(std::move(list)); }
  const change* newest() const noexcept { return changes_.newest(); }

  /// What the parts of one computation have changed: undone where it has failed, else noted by this thread's scope.
  static void settle(std::span<change_list> parts, bool has_failed) noexcept {
    for (change_list& part : parts) {
      if (has_failed) part.undo();
      else if (current() != nullptr) current()->add(std::move(part));
    }
  }
  /// All changes of this thread are final.
  static void keep_all() noexcept {
    for (undo_scope* s = current(); s != nullptr; s = s->around_) s->changes_.drop();
  }
  /// This object ends.
  static void forget(const void* object) noexcept {
    for (undo_scope* s = current(); s != nullptr; s = s->around_) s->changes_.forget(object);
  }

 private:
  const bool with_gradients_;
  undo_scope* around_;
  change_list changes_;
};

#if SINTER_DEFINES

SINTER_SHARED_NOINLINE void change_list::undo() noexcept {
  for (change* c = newest_; c != nullptr; c = c->older) c->undo();
  drop();
}
SINTER_SHARED_NOINLINE void change_list::drop() noexcept {
  while (newest_ != nullptr) delete std::exchange(newest_, newest_->older);
  oldest_ = nullptr;
}
SINTER_SHARED_NOINLINE void change_list::forget(const void* object) noexcept {
  for (change** at = &newest_; *at != nullptr;) {
    change* const c = *at;
    if (c->object != object) {
      oldest_ = c;
      at = &c->older;
      continue;
    }
    *at = c->older;
    delete c;
  }
  if (newest_ == nullptr) oldest_ = nullptr;
}

SINTER_SHARED_NOINLINE undo_scope::undo_scope(bool gradients) noexcept
    : with_gradients_(gradients), around_(std::exchange(current(), this)) {}
SINTER_SHARED_NOINLINE undo_scope::undo_scope() noexcept : undo_scope(of_gradients() != nullptr) {}
SINTER_SHARED_NOINLINE undo_scope::~undo_scope() {
  current() = around_;
  changes_.undo();
}
SINTER_SHARED_NOINLINE void undo_scope::keep() noexcept {
  if (around_ != nullptr) around_->changes_.add(std::move(changes_));
  else changes_.drop();
}

#endif  // SINTER_DEFINES

template <device D>
struct memory_change final : change {
  explicit memory_change(const storage_ptr& m) : memory(m), copy(copy_of_memory<D>(m->data, m->bytes)) {}
  void undo() noexcept override {
    try {
      device_runtime<D>::copy_within(memory->data, copy->data, memory->bytes);
    } catch (...) {  // NOLINT: a GPU that has failed, and what is on it is lost
    }
    note_write(*memory.get());
  }
  storage_ptr memory, copy;
};

template <device D>
SINTER_COLD void note_memory(const storage_ptr& memory) {
  if (capturing() == nullptr)  // else nothing runs
    undo_scope::current()->add(make_owned<memory_change<D>>(memory));
}
/// Before a statement writes to this memory in place.
template <device D>
void note_before_write(const storage_ptr& memory) {
  if (memory->is_state.load(std::memory_order_relaxed) && undo_scope::current() != nullptr) [[unlikely]]
    note_memory<D>(memory);
}

}  // namespace sinter::detail
