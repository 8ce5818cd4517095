// sinter/ops/norm.hpp: the Euclidean norm along axes.
#pragma once

#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/square.hpp"

namespace sinter {
namespace ops {

/// The square root whose derivative at 0 is taken as 0.
struct root_op : real_op {
  static constexpr const char* name = "norm";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::sqrt(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return select(y == 0, zero_of(g), g / (y * 2));
  }
};

struct norm_op {
  static constexpr const char* name = "norm";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T>
  using reducer = sinter::detail::sum_reducer<T>;
  template <class E>
  static auto prepare(const E& e, const sinter::detail::axis_set&) {
    return square(e);
  }
  template <class Node>
  static auto finish(Node node, index_t) {
    return sinter::detail::make_map(root_op{}, std::move(node));
  }
};

}  // namespace ops

/// sqrt(sum(x^2)) of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1.
/// Floating point. Derivative: g x / y, and 0 where y is 0.
///
///     tensor length = norm(x, 1);
SINTER_REDUCTION(norm, ops::norm_op)

}  // namespace sinter
