// sinter/ops/repeat.hpp: repeat, tile, repeat_interleave and roll, tensors whose slices come again or lie elsewhere.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/gather.hpp"

namespace sinter {
namespace detail {

/// x, axis i of which, counted from the last, comes times[N - 1 - i] times.
template <class E, int N>
auto repeated(const char* op, E&& e, const extents<N>& times) {
  constexpr int R = rank_of<E>, L = N > R ? N : R;
  static_assert(2 * L <= max_rank, "sinter: repeat and tile take tensors of rank 4 at most; reshape before");
  check_defined(op, e);
  const auto x = eval_to_read(std::forward<E>(e));
  extents<2 * L> spread, shown;
  extents<L> result;
  for (int i = 0; i < L; ++i) {
    const index_t n = i < L - R ? 1 : x.shape()[i - (L - R)], t = i < L - N ? 1 : times[i - (L - N)];
    if (t < 0) refuse<value_error>({op, ": ", t, " times; it must be 0 or more"});
    spread[2 * i] = 1;
    shown[2 * i] = t;
    spread[2 * i + 1] = shown[2 * i + 1] = n;
    result[i] = n * t;
  }
  return eval(x.reshape(spread.values).broadcast_to(shown.values)).reshape(result.values);
}

/// Numbers 0, 1, ..., each as often as `times` says; one number stands for all n.
SINTER_SHARED std::vector<std::int64_t> repeated_places(const std::int64_t* times, index_t count, index_t n);
#if SINTER_DEFINES
SINTER_SHARED std::vector<std::int64_t> repeated_places(const std::int64_t* times, index_t count, index_t n) {
  if (count != 1 && count != n)
    refuse<shape_error>({"repeat_interleave: ", count, " numbers for ", n, " slices; each has one"});
  std::vector<std::int64_t> places;
  for (index_t i = 0; i < n; ++i) {
    const std::int64_t t = times[count == 1 ? 0 : i];
    if (t < 0) refuse<value_error>({"repeat_interleave: ", t, " times; it must be 0 or more"});
    places.insert(places.end(), static_cast<std::size_t>(t), i);
  }
  return places;
}
#endif

/// Of an operand that needs at least so many axes, and a vector of integers.
template <class X, class C, int Least>
constexpr auto find_repeats_mistake() {
  if constexpr (!expression<C>) return not_operands{};
  else if constexpr (!has_axes<X, Least>) return axes_mistake<X, Least>{};
  else return index_select_mistake<tensor<element_of<X>, 1, device_of<X>>, C>{};
}
template <class X, class C, int Least = 1>
using repeats_mistake = decltype(find_repeats_mistake<bare<X>, bare<C>, Least>());

}  // namespace detail

/// Copies of x side by side, as many along each axis as `times` says; it may name more axes than x has, before them:
/// (n,m) by {2, 3} => (2n,3m). Runs at once. Derivative: the gradients of all copies are added. Errors:
/// value_error for a number below 0. For tensors of rank 4 at most, which `times` may have too.
///
///     tensor grid = repeat(x, {2, 3});
template <class X, std::size_t N>
  requires(detail::has_axes<X> && int{N} >= rank_of<X>)
auto repeat(X&& x, const index_t (&times)[N]) {
  return detail::repeated("repeat", std::forward<X>(x), detail::to_extents(times));
}
/// The same, of which `times` may also have fewer axes than x; then they are its last ones.
///
///     tensor wide = tile(x, {3});
template <class X, std::size_t N>
  requires(detail::has_axes<X>)
auto tile(X&& x, const index_t (&times)[N]) {
  return detail::repeated("tile", std::forward<X>(x), detail::to_extents(times));
}

/// Each slice along an axis `times` times, one after the other: (a, b) by 2 => (a, a, b, b). Runs at once. Derivative:
/// the gradients of all copies are added. Errors: value_error for a number below 0, index_error for an axis that x does
/// not have.
///
///     tensor larger = repeat_interleave(x, 2, 0);
template <class X>
  requires(detail::has_axes<X> && rank_of<X> < max_rank)
detail::evaluated<X> repeat_interleave(X&& x, detail::whole times, detail::whole axis) {
  constexpr int R = rank_of<X>;
  detail::check_defined("repeat_interleave", x);
  const int a = detail::checked_axis("repeat_interleave", axis, R);
  const index_t n = times;
  if (n < 0) detail::refuse<value_error>({"repeat_interleave: ", n, " times; it must be 0 or more"});
  const auto value = detail::eval_to_read(std::forward<X>(x));
  extents<R + 1> shown;
  extents<R> result = value.shape();
  for (int i = 0; i <= R; ++i) shown[i] = i <= a ? value.shape()[i] : i == a + 1 ? n : value.shape()[i - 1];
  result[a] *= n;
  return eval(value.unsqueeze(a + 1).broadcast_to(shown.values)).reshape(result.values);
}

/// Each element `times` times, in row-major order, as a vector.
///
///     tensor longer = repeat_interleave(x, 2);
template <class X>
  requires(detail::has_axes<X, 0>)
auto repeat_interleave(X&& x, detail::whole times) {
  detail::check_defined("repeat_interleave", x);
  return repeat_interleave(detail::eval_to_read(std::forward<X>(x)).flatten(), times, 0);
}

/// Each slice along an axis as often as its number in a vector of integers says. It waits for a GPU. Errors: also
/// shape_error for another number of numbers.
///
///     tensor longer = repeat_interleave(x, tensor<int, 1>{1, 0, 3}, 0);
template <class X, class C>
  requires(detail::is_fitting<detail::repeats_mistake<X, C>>)
detail::evaluated<X> repeat_interleave(const X& x, const C& times, detail::whole axis) {
  detail::check_defined("repeat_interleave", x);
  detail::check_defined("repeat_interleave", times);
  const int a = detail::checked_axis("repeat_interleave", axis, rank_of<X>);
  const auto counts = eval(cast<std::int64_t>(times)).contiguous().template to<cpu>();
  const auto places = detail::repeated_places(counts.data(), counts.numel(), x.shape()[a]);
  return index_select(x, a, from_data<device_of<X>>(places, {static_cast<index_t>(places.size())}));
}
/// Each element as often as its number says, in row-major order, as a vector.
///
///     tensor longer = repeat_interleave(x, tensor<int, 1>{1, 0, 3});
template <class X, class C>
  requires(detail::is_fitting<detail::repeats_mistake<X, C, 0>>)
auto repeat_interleave(const X& x, const C& times) {
  detail::check_defined("repeat_interleave", x);
  return repeat_interleave(detail::eval_to_read(x).flatten(), times, 0);
}

/// The slices along an axis, moved on by `shift`; those that leave it come in again at the other end. Runs at once.
/// Derivative: the gradient, moved back. Errors: index_error for an axis that x does not have.
///
///     tensor later = roll(x, 1, 0);
template <class X>
  requires(detail::has_axes<X>)
detail::evaluated<X> roll(X&& x, detail::whole shift, detail::whole axis) {
  detail::check_defined("roll", x);
  const int a = detail::checked_axis("roll", axis, rank_of<X>);
  const auto value = detail::eval_to_read(std::forward<X>(x));
  const index_t n = value.shape()[a], by = n > 0 ? (index_t(shift) % n + n) % n : 0;
  return concat(a, value.slice(a, n - by, n), value.slice(a, 0, n - by));
}

/// The elements in row-major order, moved on by `shift`, in the shape of x.
///
///     tensor later = roll(x, 1);
template <class X>
  requires(detail::has_axes<X>)
detail::evaluated<X> roll(X&& x, detail::whole shift) {
  detail::check_defined("roll", x);
  const auto value = detail::eval_to_read(std::forward<X>(x));
  return roll(value.flatten(), shift, 0).reshape(value.shape().values);
}

template <class X, class C, class... Axis, class Problem = typename detail::repeats_mistake<X, C, 0>::problem,
          class Fix = typename detail::repeats_mistake<X, C, 0>::fix>
void repeat_interleave(X&&, C&&, Axis...) = delete;
template <class X, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void repeat_interleave(X&&, index_t, index_t) = delete;
SINTER_AXES_LIST_REJECTIONS(repeat, 1, const index_t (&)[N])
SINTER_AXES_LIST_REJECTIONS(tile, 1, const index_t (&)[N])
SINTER_AXES_REJECTIONS(roll, 1)

}  // namespace sinter
