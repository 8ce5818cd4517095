// sinter/cuda/capture.hpp: which threads may enqueue work on a device while a step on it is captured.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>

#include "sinter/core/capture.hpp"
#include "sinter/core/fork.hpp"

namespace sinter::cuda_impl {

/// Knows of one device whether a step on it is being captured, and by which thread. All work of the device goes to one
/// stream, but for copies beside the program, which wait for an event on it. So during a capture no other thread may
/// enqueue work there, and the capturing thread may enqueue work nowhere else. Callers keep the lock from enter() or
/// wait() until their work is enqueued, or what waits for the event, so that no capture starts in between.
class capture_state {
 public:
  using hold = std::shared_lock<std::shared_mutex>;

  explicit capture_state(std::string device) : device_(std::move(device)) {}

  /// Errors: device_error where a capture is under way.
  void begin() {
    refuse_in_child("capture");
    sinter::detail::refuse_capture("capture: a step on " + device_,
                                   "captures do not nest; capture one after the other");
    {
      const std::lock_guard lock(putting_);
      if (on_.exchange(true)) throw busy("capture");
    }
    sinter::detail::capturing() = &device_;
  }
  void end() noexcept {
    sinter::detail::capturing() = nullptr;
    on_.store(false);
  }

  /// Call it before work is enqueued on the device. Errors: device_error for the wrong thread, or the wrong device of a
  /// thread that captures.
  [[nodiscard]] hold enter(const char* what) const {
    refuse_in_child(what);
    hold held(putting_);
    const std::string* const captured = sinter::detail::capturing();
    if (captured == &device_) return held;
    if (captured != nullptr) sinter::detail::refuse_capture(std::string("'") + what + "' on " + device_, other_device);
    if (on_.load(std::memory_order_relaxed)) throw busy(what);
    return held;
  }
  /// For what waits for the device, which a capture cannot. Errors: device_error.
  [[nodiscard]] hold wait(const std::string& what) const {
    refuse_in_child(what);
    sinter::detail::refuse_capture(
        what, "the captured work has not run; read results after replay(), and bring inputs before it");
    hold held(putting_);
    if (on_.load(std::memory_order_relaxed)) throw busy(what);
    return held;
  }

  /// For fork_watch.
  void at_fork(sinter::detail::fork_step step) noexcept {
    in_child_ = in_child_ || step == sinter::detail::fork_step::in_child;
  }

 private:
  /// CUDA does not work in a child of a process that has used it, and threads of the parent may have held locks.
  void refuse_in_child(std::string_view what) const {
    if (in_child_)
      sinter::detail::refuse<device_error>(
          {"'", what, "': this process was forked after its parent had used ", device_,
           ", and CUDA does not work in such a child; fork before, or start a program by exec"});
  }

  static constexpr const char* other_device =
      "a graph holds the work of one device; move this work out of the captured step";

  device_error busy(const std::string& what) const {
    return device_error("'" + what + "': another thread captures a step on " + device_ + "; wait for it to finish");
  }

  std::string device_;
  mutable std::shared_mutex putting_;
  std::atomic<bool> on_{false};
  bool in_child_ = false;
  sinter::detail::fork_watch watch_{*this};
};

}  // namespace sinter::cuda_impl
