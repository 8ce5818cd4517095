// sinter/ops/shift_right.hpp: bits moved down.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct shift_right_op : integer_op {
  static constexpr const char* name = "shift_right";
  template <class V>
  SINTER_WORD static V apply(V a, V b) {
    const V zero = math::constant<V>(0), top = math::constant<V>(8 * sizeof(math::element_t<V>) - 1);
    const V moved = static_cast<V>(a >> static_cast<V>(b & top));
    if constexpr (std::is_unsigned_v<math::element_t<V>>) {  // compilers warn of what is compared with 0
      return math::select(b <= top, moved, zero);
    } else {
      const V sign = math::select(a < zero, static_cast<V>(~zero), zero);
      return math::select(math::logical_and(b >= zero, b <= top), moved, sign);
    }
  }
};

}  // namespace ops

/// a >> b, elementwise and broadcast on integers; signed ones keep their sign. Where b is negative or not below the
/// number of bits: 0, or -1 for negative a.
///
///     tensor y = k >> 3;
SINTER_BINARY_FUNCTION(operator>>, ops::shift_right_op)

}  // namespace sinter
