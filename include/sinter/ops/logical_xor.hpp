// sinter/ops/logical_xor.hpp: whether one only is true.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct logical_xor_op : predicate_op {
  static constexpr const char* name = "logical_xor";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return math::logical_xor(without_mask(a), without_mask(b));
  }
};

}  // namespace ops

/// Whether one only is true, elementwise and broadcast; a mask without derivative. Elements of any type count as true
/// where they are not 0, NaN too.
///
///     tensor mask = logical_xor(x > 0, y > 0);
SINTER_BINARY_FUNCTION(logical_xor, ops::logical_xor_op)

}  // namespace sinter
