// sinter/ops/logical_and.hpp: whether both are true.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct logical_and_op : predicate_op {
  static constexpr const char* name = "logical_and";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return math::logical_and(without_mask(a), without_mask(b));
  }
};

}  // namespace ops

/// a && b, elementwise and broadcast on bool: whether both are true; a mask without derivative. Both sides are
/// computed.
///
///     tensor mask = x > 0 && x < 1;
SINTER_BINARY_FUNCTION(operator&&, ops::of_masks<ops::logical_and_op>)

/// The same of operands of any element type, which count as true where they are not 0, NaN too.
///
///     tensor mask = logical_and(x, y);
SINTER_BINARY_FUNCTION(logical_and, ops::logical_and_op)

}  // namespace sinter
