// sinter/ops/availability.hpp: concepts with which user code asks whether an op applies to its operands.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/ternary.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// `a + b` compiles: one device, one element type (or a literal that fits), and elements that can be added.
///
///     template <class A, class B>
///       requires addable<A, B>
///     auto mean_of(const A& a, const B& b) { return (a + b) / 2; }
template <class A, class B>
concept addable = requires(const A& a, const B& b) { a + b; };

/// `a - b` compiles.
template <class A, class B>
concept subtractable = requires(const A& a, const B& b) { a - b; };

/// `a * b` compiles.
template <class A, class B>
concept multipliable = requires(const A& a, const B& b) { a* b; };

/// `a / b` compiles.
template <class A, class B>
concept dividable = requires(const A& a, const B& b) { a / b; };

/// `a == b` and `a < b` compile and give masks; not so for masks themselves, which have no order.
template <class A, class B>
concept comparable = requires(const A& a, const B& b) {
  a == b;
  a < b;
  requires expression<decltype(a < b)>;
};

namespace detail {

template <class, class T>
using value_for = compute_type<T>;

template <class Op, class... A>
struct applies {
  static constexpr bool test() {
    if constexpr (fits<Op, A...>) return requires(Op op, value_for<A, literals_type<A...>>... x) { op.apply(x...); };
    else return false;
  }
};

template <class M, class A, class B>
struct applies<ops::where_op, M, A, B> {
  static constexpr bool test() {
    return requires(const M& m, const A& a, const B& b) { where(m, a, b); };
  }
};

}  // namespace detail

/// The op (`ops::hypot_op`, `ops::clamp_op`, ...) takes operands of these types: at least one is an expression, all are
/// on one device and of one element type that the op accepts, and literals fit it.
///
///     static_assert(!applicable<ops::add_op, tensor<float, 2>, tensor<float, 2, cuda<0>>>);
template <class Op, class... A>
concept applicable = (operand<A> && ...) && (expression<A> || ...) && detail::applies<Op, detail::bare<A>...>::test();

}  // namespace sinter
