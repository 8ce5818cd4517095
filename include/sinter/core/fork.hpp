// sinter/core/fork.hpp: what forked children find: none of the threads of their parent, and no lock that one of them
// held.
#pragma once

#include <atomic>
#include <mutex>
#include <new>
#include <thread>

#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/platform.hpp"

namespace sinter::detail {

enum class fork_step { before, in_parent, in_child };

#if SINTER_FORKS

/// While it lives, fork() calls `watched.at_fork(step)`, which throws nothing: before it in the parent, and after it in
/// both processes. As the last member of what it watches it begins after, and ends before, all that at_fork() uses.
class fork_watch {
 public:
  template <class T>
  explicit fork_watch(T& watched)
      : watched_(&watched), tell_([](void* one, fork_step step) { static_cast<T*>(one)->at_fork(step); }) {
    begin();
  }
  fork_watch(const fork_watch&) = delete;
  fork_watch& operator=(const fork_watch&) = delete;
  ~fork_watch();

 private:
  struct registry {
    std::mutex changing;  ///< held from before a fork until after it
    fork_watch* first;
  };
  static inline constinit registry every_{};

  void begin();
  static void tell_all(fork_step step);
  static const int asked_;

  void* watched_;
  void (*tell_)(void*, fork_step);
  fork_watch* next_ = nullptr;
  fork_watch* previous_ = nullptr;
};

#else

class fork_watch {
 public:
  template <class T>
  explicit fork_watch(T&) {}
};

#endif

/// A mutex that fork() takes before, so that in the child it is free and what it guards is whole. A thread that holds
/// one must not wait for another.
class fork_safe_mutex {
 public:
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  void at_fork(fork_step step) { step == fork_step::before ? lock() : unlock(); }

 private:
  std::mutex mutex_;
  fork_watch watch_{*this};
};

template <class T, class Make>
SINTER_COLD T& make_first(std::atomic<T*>& made, const Make& make) {
  owned_ptr<T> mine(make());
  T* there = nullptr;
  if (made.compare_exchange_strong(there, mine.get(), std::memory_order_acq_rel, std::memory_order_acquire))
    return *mine.release();
  return *there;
}

/// Puts a thread object that joins nothing in the place of one whose thread is the parent's.
SINTER_SHARED void forget_thread(std::thread& lost) noexcept;

/// The object that `made` refers to, made at first use and never destroyed. Two threads may make one each, and one of
/// the two is then dropped: a static of a function would be locked meanwhile, for ever in a child that another thread
/// forks.
template <class T, class Make>
T& make_once(std::atomic<T*>& made, const Make& make) {
  if (T* const there = made.load(std::memory_order_acquire)) return *there;
  return make_first(made, make);
}

#if SINTER_DEFINES

#if SINTER_FORKS

SINTER_SHARED void fork_watch::begin() {
  registry& all = every_;
  const std::lock_guard lock(all.changing);
  next_ = all.first;
  if (next_ != nullptr) next_->previous_ = this;
  all.first = this;
}
SINTER_SHARED fork_watch::~fork_watch() {
  registry& all = every_;
  const std::lock_guard lock(all.changing);
  (previous_ != nullptr ? previous_->next_ : all.first) = next_;
  if (next_ != nullptr) next_->previous_ = previous_;
}
SINTER_SHARED void fork_watch::tell_all(fork_step step) {
  for (const fork_watch* one = every_.first; one != nullptr; one = one->next_) one->tell_(one->watched_, step);
}
inline const int fork_watch::asked_ = tell_of_forks([] { every_.changing.lock(), tell_all(fork_step::before); },
                                                    [] { tell_all(fork_step::in_parent), every_.changing.unlock(); },
                                                    [] { tell_all(fork_step::in_child), every_.changing.unlock(); });

#endif  // SINTER_FORKS

SINTER_SHARED void forget_thread(std::thread& lost) noexcept { ::new (static_cast<void*>(&lost)) std::thread; }

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
