// sinter/ops/not_equal.hpp: a != b.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct not_equal_op : predicate_op {
  static constexpr const char* name = "not_equal";
  template <class A, class B>
  SINTER_WORD static auto apply(A a, B b) {
    return without_mask(a) != without_mask(b);
  }
};

}  // namespace ops

/// a != b, elementwise and broadcast; a mask of bool without derivative. Comparisons with NaN are false, != is true.
///
///     tensor mask = x != 0;
SINTER_BINARY_FUNCTION(operator!=, ops::not_equal_op)

}  // namespace sinter
