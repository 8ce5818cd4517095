// sinter/ops/less.hpp: a < b.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct less_op : order_op {
  static constexpr const char* name = "less";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return without_mask(a) < without_mask(b);
  }
};

}  // namespace ops

/// a < b, elementwise and broadcast; a mask of bool without derivative. Comparisons with NaN are false, != is true.
/// Masks themselves have no order: write (0 < x) && (x < 1).
///
///     tensor mask = x < 0;
SINTER_BINARY_FUNCTION(operator<, ops::less_op)

}  // namespace sinter
