// sinter/ops/op.hpp: what an op inherits: the element types it accepts and the type of its result.
#pragma once

#include "sinter/expr/node.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter::ops {

// In derivatives an unqualified `exp(x)` finds the word for values and, by argument, the function for expressions.
using namespace math;  // NOLINT

/// float and double; the result has the operands' type.
struct real_op {
  template <class T>
  static constexpr bool accepts = std::is_floating_point_v<T>;
  template <class T, class...>
  using result = T;
};

/// Every element type but bool; the result has the operands' type.
struct number_op {
  template <class T>
  static constexpr bool accepts = !std::is_same_v<T, bool>;
  template <class T, class...>
  using result = T;
};

/// Every element type, giving bool.
struct predicate_op {
  template <class T>
  static constexpr bool accepts = true;
  template <class...>
  using result = bool;
};

/// bool to bool.
struct logical_op {
  template <class T>
  static constexpr bool accepts = std::is_same_v<T, bool>;
  template <class...>
  using result = bool;
};

/// A zero of G's kind, for derivatives that vanish.
template <class G>
SINTER_WORD auto zero_of(const G& g) {
  if constexpr (expression<G>) return g * 0;
  else return math::constant<G>(0);
}

}  // namespace sinter::ops
