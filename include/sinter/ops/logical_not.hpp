// sinter/ops/logical_not.hpp: the negation of a mask.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct logical_not_op : logical_op {
  static constexpr const char* name = "logical_not";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::logical_not(x);
  }
};

}  // namespace ops

/// !x, elementwise on bool; a mask without derivative.
///
///     tensor mask = !(x > 0);
SINTER_UNARY_FUNCTION(operator!, ops::logical_not_op)
SINTER_UNARY_FUNCTION(logical_not, ops::logical_not_op)

}  // namespace sinter
