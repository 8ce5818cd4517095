// sinter/nn/buffer.hpp: a member of a module that moves and is saved with it, and is not trained.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/nn/buffer_log.hpp"

namespace sinter::nn {

/// A tensor that belongs to the state of a module but not to its parameters, such as a running mean: to(), infer(),
/// copy_state() and state() take it along; optimizers, named_parameters() and parameter_count() do not see it. Listed
/// in visit() as a parameter is.
///
/// As with a parameter, copies are handles to the same memory, and `const` is shallow: forward() may write to it. What
/// statements write there in a call of a module that throws is put back; through data() and (i) it is not.
///
///     nn::buffer<float, 1, D> mean;
///     tensor y = x - mean.value();
///     mean.value() += 0.1f * (now - mean.value());
template <element T, int R, device D = cpu>
class buffer {
 public:
  using value_type = T;
  using device_type = D;
  using tensor_type = tensor<T, R, D>;
  static constexpr int rank = R;

  buffer() = default;
  /// From a tensor, whose memory it shares, or an expression, which is evaluated.
  template <expression E>
    requires sinter::detail::converts<E, T, R, D>
  buffer(E&& e) : value_(std::forward<E>(e)) {  // NOLINT: implicit on purpose
    if (value_.defined()) sinter::detail::access::storage_of(value_)->is_state.store(true, std::memory_order_relaxed);
  }
  template <expression E, class Problem = typename sinter::detail::conversion_mistake<E, T, R, D>::problem,
            class Fix = typename sinter::detail::conversion_mistake<E, T, R, D>::fix>
  buffer(E&&) = delete;

  /// The tensor, on the same memory. Inside a function that checkpoint() runs again, a copy where the function writes.
  [[nodiscard]] tensor_type value() const {
    if (detail::buffer_run* const run = detail::buffer_run::current()) return run->seen(value_);
    return value_;
  }
  bool defined() const noexcept { return value_.defined(); }
  const extents<R>& shape() const noexcept { return value_.shape(); }
  index_t numel() const noexcept { return value_.numel(); }

 private:
  tensor_type value_;
};

}  // namespace sinter::nn
