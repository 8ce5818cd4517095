// sinter/ops/isinf.hpp: whether x is an infinity.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct isinf_op : predicate_op {
  static constexpr const char* name = "isinf";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::isinf(x);
  }
};

}  // namespace ops

/// Whether x is an infinity, elementwise; a mask of bool without derivative.
///
///     tensor mask = isinf(x);
SINTER_UNARY_FUNCTION(isinf, ops::isinf_op)

}  // namespace sinter
