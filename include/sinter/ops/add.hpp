// sinter/ops/add.hpp: the sum of two operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct add_op : number_op {
  static constexpr const char* name = "add";
  static constexpr unsigned grad_uses[2] = {uses::nothing, uses::nothing};
  static constexpr unsigned passes_on = uses::first | uses::second;  ///< whose gradient is g itself
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(wrapping(a) + wrapping(b));
  }
  template <int I, class G, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const A&, const B&, const Y&) {
    return g;
  }
};

}  // namespace ops

/// a + b, elementwise and broadcast. All element types but bool; a literal takes the tensor's type.
/// Derivative: g to both. Integers wrap around.
///
///     tensor y = x + 1.f;
SINTER_BINARY_FUNCTION(operator+, ops::add_op)

}  // namespace sinter
