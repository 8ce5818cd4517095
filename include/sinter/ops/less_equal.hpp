// sinter/ops/less_equal.hpp: a <= b.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct less_equal_op : order_op {
  static constexpr const char* name = "less_equal";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return without_mask(a) <= without_mask(b);
  }
};

}  // namespace ops

/// a <= b, elementwise and broadcast; a mask of bool without derivative. Comparisons with NaN are false, != is true.
///
///     tensor mask = x <= 0;
SINTER_BINARY_FUNCTION(operator<=, ops::less_equal_op)

}  // namespace sinter
