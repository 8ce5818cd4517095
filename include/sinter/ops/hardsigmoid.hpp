// sinter/ops/hardsigmoid.hpp: the logistic function in three straight pieces.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/hardtanh.hpp"
#include "sinter/ops/multiply.hpp"

namespace sinter {
namespace ops {

struct hardsigmoid_op : real_op {
  static constexpr const char* name = "hardsigmoid";
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V y = x / 6 + math::constant<V>(0.5);
    return math::min(math::max(y, math::constant<V>(0)), math::constant<V>(1));
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y& y) {
    return select(logical_or(y <= 0, y >= 1), zero_of(g), g / 6);
  }
};

}  // namespace ops

/// x/6 + 1/2 clamped to [0, 1], elementwise, floating point. Derivative: 0 where y <= 0 or y >= 1, otherwise g / 6.
///
///     tensor y = hardsigmoid(x);
SINTER_UNARY_FUNCTION(hardsigmoid, ops::hardsigmoid_op)

/// slope x + offset clamped to [0, 1], as ONNX' HardSigmoid: a formula, whose derivative is slope g or 0.
///
///     tensor y = hardsigmoid(x, 0.2, 0.5);
template <real_expression A>
auto hardsigmoid(A&& x, double slope, double offset) {
  detail::check_defined("hardsigmoid", x);
  return hardtanh(std::forward<A>(x) * slope + offset, 0, 1);
}
template <expression A, class Problem = element_type_without_this_op<element_of<A>>,
          class Fix = use_another_element_type_or_cast>
  requires(!floating_element<element_of<A>>)
void hardsigmoid(A&&, double, double) = delete;

}  // namespace sinter
