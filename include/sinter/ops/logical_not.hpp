// sinter/ops/logical_not.hpp: the negation of a mask.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct logical_not_op : predicate_op {
  static constexpr const char* name = "logical_not";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::logical_not(without_mask(x));
  }
};

}  // namespace ops

/// !x, elementwise on bool; a mask without derivative.
///
///     tensor mask = !(x > 0);
SINTER_UNARY_FUNCTION(operator!, ops::of_masks<ops::logical_not_op>)

/// The same of any element type: whether x is 0.
///
///     tensor mask = logical_not(x);
SINTER_UNARY_FUNCTION(logical_not, ops::logical_not_op)

}  // namespace sinter
