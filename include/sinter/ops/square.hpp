// sinter/ops/square.hpp: x times x.
#pragma once

#include "sinter/ops/multiply.hpp"
#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct square_op : number_op {
  static constexpr const char* name = "square";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return multiply_op::apply(x, x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return 2 * g * x;
  }
};

}  // namespace ops

/// x^2, elementwise; integers wrap around. Derivative: 2 g x.
///
///     tensor loss = sum(square(y - target));
SINTER_UNARY_FUNCTION(square, ops::square_op)

}  // namespace sinter
