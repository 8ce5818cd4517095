// sinter/ops/isnan.hpp: whether x is not a number.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct isnan_op : predicate_op {
  static constexpr const char* name = "isnan";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::isnan(x);
  }
};

}  // namespace ops

/// Whether x is not a number, elementwise; a mask of bool without derivative.
///
///     tensor mask = isnan(x);
SINTER_UNARY_FUNCTION(isnan, ops::isnan_op)

}  // namespace sinter
