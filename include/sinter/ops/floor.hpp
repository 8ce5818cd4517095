// sinter/ops/floor.hpp: the largest integer not above x.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct floor_op : number_op {
  static constexpr const char* name = "floor";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::floor(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return zero_of(g);
  }
};

}  // namespace ops

/// The largest integer not above x, elementwise; integers stay what they are. Derivative: 0.
///
///     tensor y = floor(x);
SINTER_UNARY_FUNCTION(floor, ops::floor_op)

}  // namespace sinter
