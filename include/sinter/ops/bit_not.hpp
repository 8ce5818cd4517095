// sinter/ops/bit_not.hpp: the complement of every bit.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct bit_not_op : integer_op {
  static constexpr const char* name = "bit_not";
  template <class V>
  SINTER_WORD static V apply(V x) {
    return static_cast<V>(~x);
  }
};

}  // namespace ops

/// ~x, elementwise on integers.
///
///     tensor y = ~k;
SINTER_UNARY_FUNCTION(operator~, ops::bit_not_op)

}  // namespace sinter
