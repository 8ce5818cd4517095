// sinter/ops/addcmul.hpp: addcmul and addcdiv, a multiple of a product or quotient added.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"

namespace sinter {

/// x + value a b, elementwise and broadcast; the formula of these ops, in one pass with what stands around it, with
/// their derivatives and errors.
///
///     tensor y = addcmul(x, a, b, 0.5);
template <expression X, class A, class B>
auto addcmul(X&& x, A&& a, B&& b, double value = 1) {
  return std::forward<X>(x) + value * (std::forward<A>(a) * std::forward<B>(b));
}
/// x + value a / b, elementwise and broadcast; as addcmul.
///
///     tensor y = addcdiv(x, a, b, -0.1);
template <expression X, class A, class B>
auto addcdiv(X&& x, A&& a, B&& b, double value = 1) {
  return std::forward<X>(x) + value * (std::forward<A>(a) / std::forward<B>(b));
}

/// For `addcmul(x, a, b, {.value = 0.5})`.
struct factor_option {
  double value = 1;
};
template <expression X, class A, class B>
auto addcmul(X&& x, A&& a, B&& b, const factor_option& o) {
  return addcmul(std::forward<X>(x), std::forward<A>(a), std::forward<B>(b), o.value);
}
template <expression X, class A, class B>
auto addcdiv(X&& x, A&& a, B&& b, const factor_option& o) {
  return addcdiv(std::forward<X>(x), std::forward<A>(a), std::forward<B>(b), o.value);
}

}  // namespace sinter
