// sinter/ops/bit_xor.hpp: the bits set in one operand only.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct bit_xor_op : integer_op {
  static constexpr const char* name = "bit_xor";
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    return static_cast<V>(a ^ b);
  }
};

}  // namespace ops

/// a ^ b, elementwise and broadcast on integers: the bits set in one operand only.
///
///     tensor y = k ^ 1;
SINTER_BINARY_FUNCTION(operator^, ops::bit_xor_op)

}  // namespace sinter
