// sinter/ops/norm.hpp: the Euclidean norm along axes.
#pragma once

#include "sinter/ops/cast.hpp"
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

/// The norm as the root of a sum, for second derivatives.
template <class T>
struct root_of_sum_op {
  static constexpr const char* name = "norm";
  static constexpr bool needs_values = false;
  template <class U>
  using reducer = sinter::detail::sum_reducer<U>;
  template <class E>
  static auto prepare(const E& e, const sinter::detail::axis_set&) {
    return square(cast<double>(e));
  }
  template <class Node>
  static auto finish(Node node, index_t) {
    return cast<T>(sinter::detail::make_map(root_op{}, std::move(node)));
  }
};

struct norm_op {
  using fix_of_third = write_vector_norm_with_the_order_and_the_axis;
  static constexpr const char* name = "norm";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = floating_element<T>;
  template <class T>
  using reducer = sinter::detail::norm_reducer<T>;
  template <class T>
  using twice = root_of_sum_op<T>;
  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second, uses::nothing, uses::nothing};
    template <int I, class G, class X, class Y, class Aux, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& y, const Aux&, const R&) {
      return select(y == 0, zero_of(g), g * (x / y));
    }
  };
  template <class E, class R>
  static R aux(const E&, const R& result, const sinter::detail::axis_set&) {
    return result;
  }
};

}  // namespace ops

/// sqrt(sum(x^2)) of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1.
/// Floating point; right wherever it is in the range of the type, also where squares are not. Derivative: g x / y, and
/// 0 where y is 0.
///
///     tensor length = norm(x, 1);
SINTER_REDUCTION(norm, ops::norm_op)
SINTER_OPTION_AS_TEXT(norm, leave_it_out_or_write_matrix_norm)

}  // namespace sinter
