// sinter/ops/ceil.hpp: the smallest integer not below x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct ceil_op : number_op {
  static constexpr const char* name = "ceil";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::ceil(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// The smallest integer not below x, elementwise; integers stay what they are. Derivative: 0.
///
///     tensor y = ceil(x);
SINTER_UNARY_FUNCTION(ceil, ops::ceil_op)

}  // namespace sinter
