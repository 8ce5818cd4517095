// sinter/ops/logical_or.hpp: whether either is true.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct logical_or_op : predicate_op {
  static constexpr const char* name = "logical_or";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return math::logical_or(without_mask(a), without_mask(b));
  }
};

}  // namespace ops

/// a || b, elementwise and broadcast on bool: whether either is true; a mask without derivative. Both sides are
/// computed.
///
///     tensor mask = x > 0 || x < 1;
SINTER_BINARY_FUNCTION(operator||, ops::of_masks<ops::logical_or_op>)

/// The same of operands of any element type, which count as true where they are not 0, NaN too.
///
///     tensor mask = logical_or(x, y);
SINTER_BINARY_FUNCTION(logical_or, ops::logical_or_op)

}  // namespace sinter
