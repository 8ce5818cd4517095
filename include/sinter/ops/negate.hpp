// sinter/ops/negate.hpp: the additive inverse.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {
namespace ops {

struct negate_op : number_op {
  static constexpr const char* name = "negate";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class V>
  SINTER_WORD static V apply(V x) {
    return math::neg(x);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static auto grad(const G& g, const X&, const Y&) {
    return -g;
  }
};

}  // namespace ops

/// -x, elementwise. Derivative: -g. Integers wrap around.
///
///     tensor y = -x;
template <class A, class = std::enable_if_t<detail::fits<ops::negate_op, A>>>
auto operator-(A&& a) {
  return detail::make_map(ops::negate_op{}, std::forward<A>(a));
}
// Written out, because clang lists these with every message about a binary minus, twice as long where they are macros.
template <class A, class Problem = typename detail::mistake_of<ops::negate_op, A>::problem,
          class Fix = typename detail::mistake_of<ops::negate_op, A>::fix>
void operator-(A&&) = delete;

/// x as it is; not for bool. Derivative: g.
///
///     tensor y = positive(x);
template <class A, class = std::enable_if_t<detail::fits<ops::negate_op, A>>>
detail::bare<A> positive(A&& x) {
  return std::forward<A>(x);
}
SINTER_UNARY_REJECTIONS(positive, ops::negate_op)

}  // namespace sinter
