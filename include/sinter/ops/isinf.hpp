// sinter/ops/isinf.hpp: isinf, isposinf and isneginf, whether x is an infinity, or that of one sign.
#pragma once

#include <limits>

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct isinf_op : predicate_op {
  static constexpr const char* name = "isinf";
  template <class V>
  SINTER_WORD static auto apply(V x) {
    return math::isinf(x);
  }
};

template <bool Positive>
struct infinity_of_sign : predicate_op {
  template <class V>
  SINTER_WORD static auto apply(V x) {
    constexpr double infinity = std::numeric_limits<double>::infinity();
    if constexpr (math::real<math::element_t<V>>) return x == math::constant<V>(Positive ? infinity : -infinity);
    else return math::isinf(x);
  }
};
struct isposinf_op : infinity_of_sign<true> {
  static constexpr const char* name = "isposinf";
};
struct isneginf_op : infinity_of_sign<false> {
  static constexpr const char* name = "isneginf";
};

}  // namespace ops

/// Whether x is an infinity, elementwise; a mask of bool without derivative.
///
///     tensor mask = isinf(x);
SINTER_UNARY_FUNCTION(isinf, ops::isinf_op)

/// Whether x is the positive infinity; as isinf.
///
///     tensor mask = isposinf(x);
SINTER_UNARY_FUNCTION(isposinf, ops::isposinf_op)

/// Whether x is the negative infinity; as isinf.
///
///     tensor mask = isneginf(x);
SINTER_UNARY_FUNCTION(isneginf, ops::isneginf_op)

}  // namespace sinter
