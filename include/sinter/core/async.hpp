// sinter/core/async.hpp: copies that run beside the program, and the value one has to wait for.
#pragma once

#include <exception>
#include <memory>
#include <thread>

#include "sinter/core/create.hpp"

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
  explicit pending(F make) : state_(std::make_unique<state>()) {
    state* s = state_.get();
    worker_ = std::thread([s, make = std::move(make)] {
      try {
        s->value = make();
      } catch (...) {
        s->failure = std::current_exception();
      }
    });
  }
  pending(pending&&) noexcept = default;
  pending& operator=(pending&& other) noexcept {
    if (worker_.joinable()) worker_.join();
    worker_ = std::move(other.worker_);
    state_ = std::move(other.state_);
    return *this;
  }
  ~pending() {
    if (worker_.joinable()) worker_.join();
  }

  /// Waits and hands the tensor over, once; rethrows what went wrong on the way.
  Tensor get() {
    if (!worker_.joinable()) throw value_error("pending: the tensor was taken already");
    worker_.join();
    if (state_->failure) std::rethrow_exception(state_->failure);
    return std::move(state_->value);
  }

 private:
  struct state {
    Tensor value;
    std::exception_ptr failure;
  };
  std::unique_ptr<state> state_;
  std::thread worker_;
};

template <class T, auto Shape, device D>
template <device To>
pending<tensor<T, Shape, To>> tensor<T, Shape, D>::to_async() const {
  return pending<tensor<T, Shape, To>>([t = *this] { return t.template to<To>(); });
}

}  // namespace sinter
