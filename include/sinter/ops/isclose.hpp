// sinter/ops/isclose.hpp: isclose and allclose, for tests of numbers that are rounded.
#pragma once

#include "sinter/ops/abs.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/all.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/isfinite.hpp"
#include "sinter/ops/isnan.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/logical_or.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// How far apart two numbers may be that count as close.
///
///     allclose(a, b, {.rtol = 1e-3});
struct closeness {
  double rtol = 1e-5;      ///< relative to the second
  double atol = 1e-8;      ///< and beside that
  bool equal_nan = false;  ///< NaN is close to NaN
};

namespace detail {

template <class A, class B>
concept may_be_close = expression<A> && expression<B> && fits<ops::subtract_op, bare<A>, bare<B>>;

}  // namespace detail

/// |a - b| <= atol + rtol |b|, elementwise and broadcast: a mask of bool without derivative. Infinities are close to
/// themselves alone.
///
///     tensor mask = isclose(a, b);
template <class A, class B>
  requires(detail::may_be_close<A, B>)
auto isclose(const A& a, const B& b, const closeness& o = {}) {
  const auto distance = abs(a - b);
  return a == b || (isfinite(distance) && distance <= o.atol + o.rtol * abs(b)) ||
         (isnan(a) && isnan(b) && o.equal_nan);
}
/// Is all of a close to b? It waits for a GPU. Errors: shape_error where shapes do not broadcast.
///
///     const bool same = allclose(a, b, {.rtol = 1e-3});
template <class A, class B>
  requires(detail::may_be_close<A, B>)
bool allclose(const A& a, const B& b, const closeness& o = {}) {
  return eval(all(isclose(a, b, o))).item();
}
template <class A, class B>
  requires(detail::may_be_close<A, B>)
bool allclose(const A& a, const B& b, double rtol, double atol = 1e-8) {
  return allclose(a, b, closeness{rtol, atol});
}
/// The largest |a - b|, as double: 0 of nothing and where infinities are alike, NaN where an element of either is one.
/// It waits for a GPU. Errors: shape_error where the shapes are not the same.
///
///     const double largest = max_abs_difference(a, b);
template <class A, class B>
  requires(detail::may_be_close<A, B> && rank_of<A> == rank_of<B>)
double max_abs_difference(const A& a, const B& b) {
  if (!(a.shape() == b.shape()))
    detail::refuse<shape_error>(
        {"max_abs_difference: shapes ", a.shape(), " and ", b.shape(), "; they must be the same"});
  if (a.shape().numel() == 0) return 0;
  return static_cast<double>(eval(max(where(a == b, 0, abs(cast<double>(a) - cast<double>(b))))).item());
}
/// Are the shapes and all elements the same? NaN is equal to nothing. It waits for a GPU.
///
///     const bool same = equal(a, b);
template <expression A, expression B>
  requires(rank_of<A> == rank_of<B> && detail::fits<ops::equal_op, detail::bare<A>, detail::bare<B>>)
bool equal(const A& a, const B& b) {
  return a.shape() == b.shape() && eval(all(a == b)).item();
}

}  // namespace sinter
