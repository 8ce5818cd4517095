// sinter/ops/quantile.hpp: quantile, nanquantile, median, nanmedian, kthvalue and mode: what stands at a place of the
// order.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/grad/with_gradient.hpp"
#include "sinter/ops/all.hpp"
#include "sinter/ops/argmax.hpp"
#include "sinter/ops/ceil.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/cummax.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/floor.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/isnan.hpp"
#include "sinter/ops/lerp.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/logical_not.hpp"
#include "sinter/ops/logical_or.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/round.hpp"
#include "sinter/ops/sort.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// What a quantile that lies between two elements is.
enum class between_elements {
  linear,    ///< as far from each as its place is
  lower,     ///< the smaller one
  higher,    ///< the larger one
  midpoint,  ///< halfway between them
  nearest    ///< the one that is nearer; of places halfway the even one
};

/// Behind the operands of quantile and nanquantile.
///
///     quantile(x, 0.5, 1, {.interpolation = between_elements::midpoint});
struct quantile_options {
  between_elements interpolation = between_elements::linear;
};

template <int>
struct probabilities_of_rank;
struct use_a_number_or_probabilities_of_rank_1;

namespace detail {

/// Of float or double, as quantiles lie between elements; q is a number, or a list of them.
template <class E, class Q>
constexpr auto find_quantile_mistake() {
  if constexpr (!takes_order<E>) return sort_mistake<E>{};
  else if constexpr (!std::is_floating_point_v<element_of<E>>)
    return mistake<element_type_without_this_op<element_of<E>>, use_another_element_type_or_cast>{};
  else if constexpr (std::is_arithmetic_v<Q>) return fitting<element_of<E>>{};
  else if constexpr (!expression<Q>) return no_operands<Q>{};
  else if constexpr (!same_device<E, Q>)
    return mistake<operands_on_different_devices<device_of<E>, device_of<Q>>, copy_one_operand_with_dot_to>{};
  else if constexpr (!std::is_floating_point_v<element_of<Q>>)
    return mistake<element_type_without_this_op<element_of<Q>>, use_another_element_type_or_cast>{};
  else if constexpr (rank_of<Q> != 1)
    return mistake<probabilities_of_rank<rank_of<Q>>, use_a_number_or_probabilities_of_rank_1>{};
  else return fitting<element_of<E>>{};
}
template <class E, class Q>
using quantile_mistake = decltype(find_quantile_mistake<bare<E>, bare<Q>>());
template <class E, class Q>
concept has_quantiles = is_fitting<quantile_mistake<E, Q>>;

/// Of an operand with an order, an axis and keepdim, as far as they are there.
template <class E, class... Rest>
constexpr auto find_place_mistake() {
  if constexpr (!takes_order<E>) return sort_mistake<E>{};
  else return find_axis_mistake(std::type_identity<Rest>()...);
}
template <class E, class... Rest>
using place_mistake = decltype(find_place_mistake<bare<E>, bare<Rest>...>());

/// The axis, of which a scalar has one.
template <class E>
int sorted_axis(const char* op, const E& e, index_t axis) {
  check_defined(op, e);
  constexpr int R = rank_of<E>;
  const int a = checked_axis(op, axis, R > 0 ? R : 1);
  if constexpr (R > 0)
    if (e.shape()[a] == 0) refuse<shape_error>({op, ": no values along axis ", a, " of shape ", e.shape()});
  return a;
}
template <class E>
auto with_an_axis(E&& e) {
  if constexpr (rank_of<E> == 0) return eval_to_read(std::forward<E>(e)).unsqueeze(0);
  else return bare<E>(std::forward<E>(e));
}

/// How many elements of each line are no NaN, with the axis as 1; those stand first.
template <class V>
auto count_of_numbers(const V& sorted, int axis) {
  if constexpr (floating_element<element_of<V>>) return eval(sum(!isnan(untrack(sorted)), axis, keepdim));
  else return eval(sum(untrack(sorted) == untrack(sorted), axis, keepdim));
}

/// The elements that stand at a place of each line, which has the axis as 1.
template <bool Keep, class S, class I>
auto at_place(const S& sorted, int axis, const I& place) {
  const auto values = gather(sorted.values, axis, place);
  const auto indices = gather(sorted.indices, axis, place);
  if constexpr (Keep) return values_and_indices<std::remove_const_t<decltype(values)>>{values, indices};
  else {
    const auto lower = values.squeeze(axis);
    return values_and_indices<std::remove_const_t<decltype(lower)>>{lower, indices.squeeze(axis)};
  }
}

/// At the places q (n - 1) of each line that is sorted, of which n elements count: (…,n,…) and (k,) => (…,k,…).
template <class V, class Q>
auto at_quantiles(const V& sorted, int axis, const Q& q, between_elements rule, bool skips_nan) {
  using T = element_of<V>;
  using P = element_of<Q>;
  const index_t n = sorted.shape()[axis];
  auto line = ones_extents<rank_of<V>>();
  line[axis] = q.numel();
  const auto of_line = q.reshape(line.values);
  const auto numbers = count_of_numbers(sorted, axis);
  const auto place = eval(skips_nan ? eval(of_line * cast<P>(clamp_min(numbers - 1, 0)))
                                    : eval(where(numbers < n, static_cast<P>(n - 1), of_line * static_cast<P>(n - 1))));
  const auto value = untrack(place);
  const auto at = [&](const auto& whole_place) { return gather(sorted, axis, eval(cast<std::int64_t>(whole_place))); };
  switch (rule) {
    case between_elements::lower:
      return at(floor(value));
    case between_elements::higher:
      return at(ceil(value));
    case between_elements::nearest:
      return at(round(value));
    case between_elements::midpoint:
      return eval(lerp(at(floor(value)), at(ceil(value)), 0.5));
    default:
      return eval(lerp(at(floor(value)), at(ceil(value)), cast<T>(place - floor(value))));
  }
}

template <class... Keep, class E, class Q>
auto quantiles(const char* op, E&& e, const Q& q, index_t axis, const quantile_options& o, bool skips_nan) {
  using D = device_of<E>;
  const int a = sorted_axis(op, e, axis);
  if constexpr (std::is_arithmetic_v<Q>) {
    if (!(q >= 0 && q <= 1)) refuse<value_error>({op, ": q is ", static_cast<double>(q), "; it must lie in [0, 1]"});
  } else {
    check_defined(op, q);
    if (!eval(all(untrack(eval(q)) >= 0 && untrack(eval(q)) <= 1)).item())
      refuse<value_error>({op, ": q holds a value that does not lie in [0, 1]"});
  }
  const auto sorted = sort(with_an_axis(std::forward<E>(e)), a).values;
  const auto of = [&](const auto& list) { return at_quantiles(sorted, a, list, o.interpolation, skips_nan); };
  constexpr bool keeps = sizeof...(Keep) > 0 && rank_of<E> > 0;
  if constexpr (std::is_arithmetic_v<Q>) {
    const auto y = of(full<double, D>({1}, static_cast<double>(q)));
    if constexpr (keeps) return y;
    else return y.squeeze(a);
  } else {
    const auto y = of(eval_to_read(q));
    if constexpr (keeps) {
      return y.unsqueeze(0).transpose(0, a + 1);
    } else {
      index_t order[rank_of<decltype(y)>] = {a};
      for (int d = 0, to = 1; d < rank_of<decltype(y)>; ++d)
        if (d != a) order[to++] = d;
      return y.permute(order);
    }
  }
}

template <bool Keep, class E>
auto medians(const char* op, E&& e, index_t axis, bool skips_nan) {
  const int a = sorted_axis(op, e, axis);
  const auto sorted = sort(with_an_axis(std::forward<E>(e)), a);
  const index_t n = sorted.values.shape()[a];
  const auto numbers = count_of_numbers(sorted.values, a);
  constexpr bool keeps = Keep && rank_of<E> > 0;
  if (skips_nan) return at_place<keeps>(sorted, a, eval(clamp_min(numbers - 1, 0) / 2));
  return at_place<keeps>(sorted, a, eval(where(numbers < n, numbers, (n - 1) / 2)));
}

/// Of all elements. All that equal it share the gradient.
template <class E>
auto median_of_all(const char* op, E&& e, bool skips_nan) {
  const auto forward = [op, skips_nan](const auto& x) {
    using X = std::remove_cvref_t<decltype(x)>;
    using T = element_of<X>;
    if constexpr (std::is_floating_point_v<T>)
      if (x.numel() == 0)
        return with_saved(full<T, device_of<X>>(std::numeric_limits<T>::quiet_NaN()), x,
                          full<T, device_of<X>>(std::numeric_limits<T>::quiet_NaN()));
    const tensor<T, 0, device_of<X>> y = medians<false>(op, x.flatten(), 0, skips_nan).values;
    return with_saved(y, x, y);
  };
  const auto backward = [](const auto& g, const auto& x, const auto& y) {
    using T = element_of<decltype(y)>;
    const auto equals = eval(x == y || (isnan(x) && isnan(y)));
    return where(equals, g / cast<T>(sum(equals)), 0);
  };
  check_defined(op, e);
  return with_gradient(forward, backward, "median")(std::forward<E>(e));
}

}  // namespace detail

/// The values below which a part q of the elements lies: at place q (n - 1) of the n elements in order, counted from 0.
/// q is a number, or a tensor of rank 1 with several: k of them are a first axis of extent k in the result. Of all
/// elements: x of any rank => () or (k). NaN where an element is NaN. Float and double; runs at once. A place between
/// two elements is computed in the type of q, of numbers in double. Derivative: g to the two elements by their parts,
/// and to a q that is tracked. Errors: value_error for a q outside of [0, 1], for which a GPU is waited for;
/// shape_error where there are no elements.
///
///     tensor upper = quantile(x, 0.9);
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto quantile(X&& x, const Q& q, const quantile_options& o = {}) {
  detail::check_defined("quantile", x);
  return detail::quantiles("quantile", detail::eval_to_read(std::forward<X>(x)).flatten(), q, 0, o, false);
}
/// The same along an axis, which goes: (n,m) along 1 => (n), with k values of q (k,n). With keepdim it stays with
/// extent 1. A scalar has one axis, which goes. Errors: index_error for an axis that x does not have.
///
///     tensor quartiles = quantile(x, tensor<double, 1>{0.25, 0.5, 0.75}, 1);
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto quantile(X&& x, const Q& q, detail::whole axis, const quantile_options& o = {}) {
  return detail::quantiles("quantile", std::forward<X>(x), q, axis, o, false);
}
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto quantile(X&& x, const Q& q, detail::whole axis, keepdim_t, const quantile_options& o = {}) {
  return detail::quantiles<keepdim_t>("quantile", std::forward<X>(x), q, axis, o, false);
}

/// The quantile of the elements that are not NaN; NaN where all are. See quantile.
///
///     tensor upper = nanquantile(x, 0.9, 1);
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto nanquantile(X&& x, const Q& q, const quantile_options& o = {}) {
  detail::check_defined("nanquantile", x);
  return detail::quantiles("nanquantile", detail::eval_to_read(std::forward<X>(x)).flatten(), q, 0, o, true);
}
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto nanquantile(X&& x, const Q& q, detail::whole axis, const quantile_options& o = {}) {
  return detail::quantiles("nanquantile", std::forward<X>(x), q, axis, o, true);
}
template <class X, class Q>
  requires(detail::has_quantiles<X, Q>)
auto nanquantile(X&& x, const Q& q, detail::whole axis, keepdim_t, const quantile_options& o = {}) {
  return detail::quantiles<keepdim_t>("nanquantile", std::forward<X>(x), q, axis, o, true);
}

/// The middle element in order, of an even number the smaller of the two in the middle; NaN where an element is NaN,
/// or there is none. All element types but half and bfloat16. Runs at once. Derivative: g, shared equally among the
/// elements that equal it.
///
///     tensor centre = median(x);
template <detail::takes_order X>
auto median(X&& x) {
  return detail::median_of_all("median", std::forward<X>(x), false);
}
/// The same along an axis, as `values`, and where it stands, int64, as `indices`: of equals one, of NaN the first. With
/// keepdim the axis stays with extent 1. A scalar has one axis, which goes. Derivative: g to the element at the index.
/// Errors: index_error for an axis that x does not have, shape_error for one without elements.
///
///     auto [values, indices] = median(x, 1);
template <detail::takes_order X, class... Keep>
  requires(detail::may_keep<Keep...>)
auto median(X&& x, detail::whole axis, Keep...) {
  return detail::medians<(sizeof...(Keep) > 0)>("median", std::forward<X>(x), axis, false);
}

/// The median of the elements that are not NaN; NaN where all are. See median.
///
///     tensor centre = nanmedian(x);
template <detail::takes_order X>
auto nanmedian(X&& x) {
  return detail::median_of_all("nanmedian", std::forward<X>(x), true);
}
template <detail::takes_order X, class... Keep>
  requires(detail::may_keep<Keep...>)
auto nanmedian(X&& x, detail::whole axis, Keep...) {
  return detail::medians<(sizeof...(Keep) > 0)>("nanmedian", std::forward<X>(x), axis, true);
}

/// The k-th smallest element along an axis, counted from 1, as `values`, and where it stands as `indices`: (…,n,…) =>
/// (…); with keepdim the axis stays with extent 1. Of equals the first come first; NaN counts as the largest. All
/// element types but half and bfloat16. Runs at once. Derivative: g to the element at the index. Errors: shape_error
/// where there is no k-th, index_error for an axis that x does not have.
///
///     auto [values, indices] = kthvalue(x, 2, 1);
template <detail::takes_order X, class... Keep>
  requires(detail::may_keep<Keep...>)
auto kthvalue(X&& x, detail::whole k, detail::whole axis, Keep...) {
  const int a = detail::sorted_axis("kthvalue", x, axis);
  const auto value = detail::with_an_axis(std::forward<X>(x));
  const index_t n = value.shape()[a], place = k;
  if (place < 1 || place > n)
    detail::refuse<shape_error>({"kthvalue: there is no element ", place, " of ", n, " on axis ", a, "; count from 1"});
  const auto sorted = detail::sorted("kthvalue", value, a, place, false, false);
  auto at = detail::ones_extents<rank_of<decltype(value)>>();
  for (int d = 0; d < rank_of<decltype(value)>; ++d) at[d] = d == a ? 1 : value.shape()[d];
  constexpr bool keeps = sizeof...(Keep) > 0 && rank_of<X> > 0;
  return detail::at_place<keeps>(sorted, a, full<std::int64_t, device_of<X>>(at, place - 1));
}
template <detail::takes_order X>
auto kthvalue(X&& x, detail::whole k) {
  return kthvalue(std::forward<X>(x), k, -1);
}

/// The most frequent value along an axis, of several the smallest, as `values`, and where it stands last as `indices`:
/// (…,n,…) => (…); with keepdim the axis stays with extent 1. Each NaN is a value of its own. All element types but
/// half and bfloat16. Runs at once. Derivative: g to the element at the index. Errors: index_error for an axis that x
/// does not have, shape_error for one without elements.
///
///     auto [values, indices] = mode(votes, 1);
template <detail::takes_order X, class... Keep>
  requires(detail::may_keep<Keep...>)
auto mode(X&& x, detail::whole axis, Keep...) {
  using D = device_of<X>;
  const int a = detail::sorted_axis("mode", x, axis);
  const auto sorted = sort(detail::with_an_axis(std::forward<X>(x)), a);
  const auto value = detail::untrack(sorted.values);
  const index_t n = value.shape()[a];
  auto line = detail::ones_extents<rank_of<decltype(value)>>();
  line[a] = n;
  const auto number = arange<std::int64_t, D>(n).reshape(line.values);
  const auto is_as_before = value.slice(a, 1, n) == value.slice(a, 0, n - 1);
  const auto begins = concat(a, zeros_like(sorted.indices.slice(a, 0, 1)),
                             eval(where(is_as_before, std::int64_t{0}, number.slice(a, 1, n))));
  const auto place = argmax(number - cummax(begins, a).values, a, keepdim);
  constexpr bool keeps = sizeof...(Keep) > 0 && rank_of<X> > 0;
  return detail::at_place<keeps>(sorted, a, eval(place));
}
template <detail::takes_order X>
auto mode(X&& x) {
  return mode(std::forward<X>(x), -1);
}

#define SINTER_QUANTILE_REJECTIONS(name)                                                                       \
  template <class X, class Q, class... More, class Problem = typename detail::quantile_mistake<X, Q>::problem, \
            class Fix = typename detail::quantile_mistake<X, Q>::fix>                                          \
  void name(X&&, const Q&, More&&...) = delete;
SINTER_QUANTILE_REJECTIONS(quantile)
SINTER_QUANTILE_REJECTIONS(nanquantile)
#undef SINTER_QUANTILE_REJECTIONS
#define SINTER_PLACE_REJECTIONS(name)                                                                    \
  template <class X, class... Rest, class Problem = typename detail::place_mistake<X, Rest...>::problem, \
            class Fix = typename detail::place_mistake<X, Rest...>::fix>                                 \
  void name(X&&, const Rest&...) = delete;
SINTER_PLACE_REJECTIONS(median)
SINTER_PLACE_REJECTIONS(nanmedian)
SINTER_PLACE_REJECTIONS(mode)
#undef SINTER_PLACE_REJECTIONS
template <class X, class... Rest, class Problem = typename detail::place_mistake<X, Rest...>::problem,
          class Fix = typename detail::place_mistake<X, Rest...>::fix>
void kthvalue(X&&, index_t, const Rest&...) = delete;

}  // namespace sinter
