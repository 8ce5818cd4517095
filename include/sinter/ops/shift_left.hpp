// sinter/ops/shift_left.hpp: bits moved up.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct shift_left_op : integer_op {
  static constexpr const char* name = "shift_left";
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V zero = math::constant<V>(0), top = math::constant<V>(8 * sizeof(math::element_t<V>) - 1);
    const V moved = static_cast<V>(a << static_cast<V>(b & top));
    if constexpr (std::is_unsigned_v<math::element_t<V>>)  // compilers warn of what is compared with 0
      return math::select(b <= top, moved, zero);
    else return math::select(math::logical_and(b >= zero, b <= top), moved, zero);
  }
};

}  // namespace ops

/// a << b, elementwise and broadcast on integers; 0 where b is negative or not below the number of bits.
///
///     tensor y = k << 3;
SINTER_BINARY_FUNCTION(operator<<, ops::shift_left_op)

}  // namespace sinter
