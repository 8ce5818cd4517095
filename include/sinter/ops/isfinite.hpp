// sinter/ops/isfinite.hpp: whether x is neither infinite nor NaN.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct isfinite_op : predicate_op {
  static constexpr const char* name = "isfinite";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::isfinite(x);
  }
};

}  // namespace ops

/// Whether x is neither infinite nor NaN, elementwise; a mask of bool without derivative.
///
///     tensor mask = isfinite(x);
SINTER_UNARY_FUNCTION(isfinite, ops::isfinite_op)

}  // namespace sinter
