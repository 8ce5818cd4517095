// sinter/ops/bit_and.hpp: the bits set in both operands.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct bit_and_op : integer_op {
  static constexpr const char* name = "bit_and";
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(a & b);
  }
};

}  // namespace ops

/// a & b, elementwise and broadcast on integers: the bits set in both operands.
///
///     tensor y = k & 1;
SINTER_BINARY_FUNCTION(operator&, ops::bit_and_op)

}  // namespace sinter
