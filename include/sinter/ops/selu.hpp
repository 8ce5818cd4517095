// sinter/ops/selu.hpp: the self-normalising exponential linear unit.
#pragma once

#include "sinter/ops/elu.hpp"
#include "sinter/ops/multiply.hpp"

namespace sinter {
namespace ops {

struct selu_op : real_op {
  static constexpr const char* name = "selu";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    const V below = math::expm1(x) * math::constant<V>(1.758099340847376624);  // scale times alpha
    return math::select(x > 0, x * math::constant<V>(1.050700987355480493), below);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return select(x > 0, g * number(g, 1.050700987355480493), g * exp(x) * number(g, 1.758099340847376624));
  }
};

}  // namespace ops

/// scale x where x > 0, otherwise scale alpha (e^x - 1), elementwise, floating point, with the constants that keep
/// mean 0 and variance 1. Derivative: scale g, or scale alpha e^x g.
/// Klambauer et al., "Self-normalizing neural networks", 2017.
///
///     tensor y = selu(x);
SINTER_UNARY_FUNCTION(selu, ops::selu_op)

/// The same with other constants, scale elu(x, alpha), as ONNX' Selu.
///
///     tensor y = selu(x, 2, 3);
template <real_expression A>
auto selu(A&& x, double alpha, double scale) {
  detail::check_defined("selu", x);
  return scale * elu(std::forward<A>(x), alpha);
}
template <expression A, class Problem = element_type_without_this_op<element_of<A>>,
          class Fix = use_another_element_type_or_cast>
  requires(!floating_element<element_of<A>>)
void selu(A&&, double, double) = delete;

}  // namespace sinter
