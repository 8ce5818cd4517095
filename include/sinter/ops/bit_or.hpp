// sinter/ops/bit_or.hpp: the bits set in either operand.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct bit_or_op : integer_op {
  static constexpr const char* name = "bit_or";
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(a | b);
  }
};

}  // namespace ops

/// a | b, elementwise and broadcast on integers: the bits set in either operand.
///
///     tensor y = k | 1;
SINTER_BINARY_FUNCTION(operator|, ops::bit_or_op)

}  // namespace sinter
