// sinter/ops/detail/scan.hpp: the expression behind cumsum, cumprod, ...: folds of all elements up to each along an
// axis, with fused prologue and, along the last axis, fused epilogue.
#pragma once

#include "sinter/expr/reducer.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/lines.hpp"

namespace sinter {

namespace detail {

/// Backward of a scan: Op::grad, from x and the result y where it reads them.
template <class Op, class E>
struct scan_backward final : one_input_backward {
  using T = element_of<E>;
  using D = device_of<E>;
  static constexpr int R = E::rank;
  versioned_expression<decltype(untrack(std::declval<const E&>()))> x;
  tensor<T, R, D> y;
  std::uint64_t version = 0;
  int axis = 0;

  void release() override {
    x.drop();
    y = {};
  }
  void backward(grad_state& result) override {
    const auto& g = static_cast<typed_state<T, R, D>&>(result).grad;
    if constexpr (Op::keeps_operands) {
      if (access::storage_of(y)->version.load(std::memory_order_relaxed) != version)
        refuse<autograd_error>(
            {"backward of '", name, "': its result of shape ", y.shape(),
             " was modified in place after the statement; use a copy, or write to it after backward()"});
      add_gradient(source, Op::grad(g, eval(x.get("backward of", name)), y, axis));
    } else {
      add_gradient(source, Op::grad(g, axis));
    }
  }
};

}  // namespace detail

/// Not of half and bfloat16: cast<float>() comes first. Op is a struct with `name`, `reducer<T>`, and the derivative:
/// `keeps_operands` (does it read x and y?) and grad(g, axis) or grad(g, x, y, axis), of tensors.
template <class Op, class E>
struct [[nodiscard]] scan_expr
    : detail::point_base<scan_expr<Op, E>, typename Op::template reducer<element_of<E>>::result, E::rank, device_of<E>,
                         E::order> {
  using reducer = typename Op::template reducer<element_of<E>>;
  using T = typename reducer::result;
  using D = device_of<E>;
  static constexpr int R = E::rank;
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = E::order == 0 || !Op::keeps_operands;
  static constexpr const char* explained_as() { return Op::name; }

  scan_expr(E x, int along) : e(std::move(x)), axis(along) { this->shape_ = e.shape(); }

  bool ready_for_epilogue() const { return axis == R - 1; }

  void compute_into(const tensor<T, R, D>& to, const typename detail::backend<D>::epilogue* epilogue) const {
    detail::backend<D>::template scan<reducer>(e, axis, detail::scan_results<reducer>{detail::access::data(to)},
                                               epilogue);
  }

  auto record(const tensor<T, R, D>& value) const {
    const detail::state_ptr source = detail::recording() ? detail::prologue_state(e) : detail::state_ptr();
    if (!source) return detail::unrecorded<1>(value);
    auto node = std::make_unique<detail::scan_backward<Op, E>>();
    node->name = Op::name;
    if constexpr (Op::keeps_operands) {
      node->x.keep(detail::untrack(e));
      node->y = value;
      node->version = detail::access::storage_of(value)->version.load(std::memory_order_relaxed);
    }
    node->source = source;
    node->axis = axis;
    return detail::produced<1>(value, std::move(node));
  }

  E e;
  int axis;
};

namespace detail {

template <class Op, class E>
scan_expr<Op, prologue_of<E>> make_scan(E&& e, index_t axis) {
  check_defined(Op::name, e);
  const int a = checked_axis(Op::name, axis, rank_of<E>);
  return scan_expr<Op, prologue_of<E>>(prologue(std::forward<E>(e)), a);
}

/// The scan of plain tensors, or of elementwise work on them; used by derivatives.
template <class Op, class E>
auto scan_now(const E& e, int axis) {
  return scan_expr<Op, E>(e, axis).result();
}

template <class Op, class E>
concept scannable = takes_lines<E> && Op::template accepts<element_of<E>>;

}  // namespace detail
}  // namespace sinter
