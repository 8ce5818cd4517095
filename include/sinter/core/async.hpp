// sinter/core/async.hpp: copies that run beside the program, and the value one has to wait for.
#pragma once

#include <atomic>
#include <exception>
#include <functional>
#include <new>
#include <thread>

#include "sinter/core/beside.hpp"
#include "sinter/core/create.hpp"
#include "sinter/core/fork.hpp"
#include "sinter/core/owned_ptr.hpp"

namespace sinter {

/// A tensor on its way. It cannot be read before get() has waited for it.
///
///     auto coming = x.to_async<numa<1>>();
///     prepare();
///     tensor y = coming.get();
template <class Tensor>
class [[nodiscard]] pending {
 public:
  template <class F>
  explicit pending(F make) : work_(detail::make_owned<work>(std::move(make))) {
    work* const w = work_.get();
    try {
      w->worker = std::thread([w] {
        const detail::copying_beside beside;
        w->run();
      });
    } catch (const std::exception&) {  // no thread to be had
      w->run();
    }
  }
  pending(pending&&) noexcept = default;
  pending& operator=(pending&&) noexcept = default;

  /// Waits and hands the tensor over, once; rethrows what went wrong on the way.
  Tensor get() {
    if (work_ == nullptr) detail::refuse<value_error>({"pending: the tensor was taken already"});
    const detail::owned_ptr<work> w = std::move(work_);
    if (w->worker.joinable()) w->worker.join();
    if (!w->done.load(std::memory_order_acquire)) w->run();
    if (w->failure) std::rethrow_exception(w->failure);
    return std::move(w->value);
  }

 private:
  struct work {
    template <class F>
    explicit work(F f) : make(std::move(f)) {}
    work(const work&) = delete;
    work& operator=(const work&) = delete;
    ~work() {
      if (worker.joinable()) worker.join();
    }

    void run() noexcept {
      try {
        value = make();
      } catch (...) {
        failure = std::current_exception();
      }
      done.store(true, std::memory_order_release);
    }

    /// For fork_watch: a forked child has no such thread, and does what was not done when it is asked for.
    void at_fork(detail::fork_step step) noexcept {
      if (step != detail::fork_step::in_child || !worker.joinable()) return;
      detail::forget_thread(worker);
      if (done.load(std::memory_order_acquire)) return;
      ::new (static_cast<void*>(&value)) Tensor;  // may be half-way
      ::new (static_cast<void*>(&failure)) std::exception_ptr;
    }

    std::function<Tensor()> make;
    Tensor value;
    std::exception_ptr failure;
    std::atomic<bool> done{false};
    std::thread worker;
    detail::fork_watch watch{*this};
  };
  detail::owned_ptr<work> work_;
};

template <class T, auto Shape, device D>
template <device To>
pending<tensor<T, Shape, To>> tensor<T, Shape, D>::to_async() const {
  return pending<tensor<T, Shape, To>>([t = *this] { return t.template to<To>(); });
}

}  // namespace sinter
