// sinter/ops/detail/picked.hpp: backward of ops whose results are elements of x, picked along an axis by an index.
#pragma once

#include "sinter/core/owned_ptr.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/add_in.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/indices.hpp"

namespace sinter {

/// Elements of x along an axis, and where they stand in it.
///
///     auto [values, indices] = sort(x, 1);
template <class Values>
struct values_and_indices {
  Values values;
  tensor<std::int64_t, Values::rank, typename Values::device_type> indices;
};

namespace ops {

/// Elements y of x along an axis, picked by an index of their shape: the base of gather, and the tape entry of others,
/// whose kernels find the index themselves.
struct picked_op : kernel_op {
  static constexpr const char* name = "picked";
  static constexpr unsigned grad_uses[1] = {uses::second};
  static constexpr take takes(int) { return take::strided; }

  const char* called;  ///< gather, sort and the like
  int axis;
  sinter::detail::index_order order;

  picked_op(const char* by, int along, sinter::detail::index_order o = sinter::detail::index_order::any)
      : called(by), axis(along), order(o) {}
};

}  // namespace ops

namespace detail {

/// Indices of E's elements.
template <class E>
using indices_of = typename result_of_point<std::int64_t, bare<E>::rank, device_of<E>, 0>::type;

/// Picks along an axis beyond which sums are gathered in double: an element that is read 2^24 times would take up
/// nothing more in float. Sums in double take about three times as long.
inline constexpr index_t many_picks = index_t{1} << 20;

template <class Wide, class T, int R, device D>
void add_picked_in(const tensor<T, R, D>& to, int axis, const tensor<std::int64_t, R, D>& index,
                   const tensor<T, R, D>& g, index_order order) {
  using adding = kernels<ops::scatter_add, D>;
  add_in<Wide>(to, [&](const auto& sums) {
    if constexpr (is_cpu_v<D>) adding::run({axis, order}, sums, index, g);
    else adding::run({axis, order}, sums, index, eval(cast<Wide>(g)));
  });
}
/// to[picked elements] += g
template <class T, int R, device D>
void add_picked(const tensor<T, R, D>& to, int axis, const tensor<std::int64_t, R, D>& index, const tensor<T, R, D>& g,
                index_order order) {
  if constexpr (narrow_element<T>) {
    if (index.shape()[axis] > many_picks) add_picked_in<double>(to, axis, index, g, order);
    else add_picked_in<float>(to, axis, index, g, order);
  } else if (std::is_same_v<T, float> && index.shape()[axis] > many_picks) {
    add_picked_in<double>(to, axis, index, g, order);
  } else {
    kernels<ops::scatter_add, D>::run({axis, order}, to, index, g);
  }
}

template <device D>
struct kernels<ops::picked_op, D> {
  template <class Backward>
  static void reverse(const ops::picked_op& op, const Backward& b) {
    add_picked(b.template sum_of<0>(), op.axis, b.template operand<1>(), b.gradient(), op.order);
  }
};

/// y, which another kernel has made, as elements of the prologue x: a variable where x is tracked.
template <class X, class T, int R, device D>
evaluated<X> picked(const ops::picked_op& op, const tensor<T, R, D>& y, const X& x,
                    const tensor<std::int64_t, R, D>& index) {
  if constexpr (is_tracked_v<X>) {
    static_assert(X::order < 2, "sinter: this op has no second derivative; use it on variables of order 1");
    state_ptr source = recording() ? prologue_state(x) : state_ptr();
    if (!source) return unrecorded<1>(y);
    auto node = make_owned<kernel_backward_of<ops::picked_op, X, tensor<std::int64_t, R, D>>>(op, nothing_saved());
    node->name = called(op);
    node->template set_source<0>(std::move(source));
    node->template keep_operand<1>(index);
    return produced<1>(y, std::move(node));
  } else {
    return y;
  }
}

}  // namespace detail
}  // namespace sinter
