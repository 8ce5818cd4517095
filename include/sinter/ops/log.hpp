// sinter/ops/log.hpp: the natural logarithm.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct log_op : real_op {
  static constexpr const char* name = "log";
  static constexpr unsigned grad_uses[1] = {uses::first};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::log(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const Y&) {
    return g / x;
  }
};

}  // namespace ops

/// The natural logarithm, elementwise, floating point; -inf at 0, NaN below. Derivative: g / x.
///
///     tensor y = log(x);
SINTER_UNARY_FUNCTION(log, ops::log_op)

}  // namespace sinter
