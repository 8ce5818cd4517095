// sinter/ops/split.hpp: split, chunk, tensor_split and unbind, the parts of a tensor along an axis.
#pragma once

#include <initializer_list>
#include <vector>

#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/lines.hpp"

namespace sinter {
namespace detail {

/// Where parts end along an axis of extent n; the last one ends at n.
using part_ends = std::vector<index_t>;
SINTER_SHARED part_ends ends_of_size(const char* op, index_t n, index_t size);
SINTER_SHARED part_ends ends_of_sizes(const char* op, index_t n, const std::vector<index_t>& sizes);
SINTER_SHARED part_ends ends_of_chunks(const char* op, index_t n, index_t count);
SINTER_SHARED part_ends ends_of_equal_parts(const char* op, index_t n, index_t count);
SINTER_SHARED part_ends ends_of_cuts(const char* op, index_t n, const std::vector<index_t>& cuts);

#if SINTER_DEFINES

SINTER_SHARED part_ends ends_of_size(const char* op, index_t n, index_t size) {
  if (size < 0 || (size == 0 && n > 0)) refuse<value_error>({op, ": parts of ", size, "; they must be of 1 or more"});
  part_ends ends;
  for (index_t end = size; end < n; end += size) ends.push_back(end);
  ends.push_back(n);
  return ends;
}

SINTER_SHARED part_ends ends_of_sizes(const char* op, index_t n, const std::vector<index_t>& sizes) {
  part_ends ends;
  index_t end = 0;
  for (const index_t size : sizes) {
    if (size < 0) refuse<value_error>({op, ": a part of ", size, "; sizes must be 0 or more"});
    ends.push_back(end += size);
  }
  if (end != n) refuse<shape_error>({op, ": sizes that add up to ", end, " for an axis of extent ", n});
  return ends;
}

SINTER_SHARED part_ends ends_of_chunks(const char* op, index_t n, index_t count) {
  if (count < 1) refuse<value_error>({op, ": ", count, " parts; there must be 1 or more"});
  if (n == 0) return part_ends(static_cast<std::size_t>(count), 0);
  return ends_of_size(op, n, (n + count - 1) / count);
}

SINTER_SHARED part_ends ends_of_equal_parts(const char* op, index_t n, index_t count) {
  if (count < 1) refuse<value_error>({op, ": ", count, " parts; there must be 1 or more"});
  part_ends ends;
  for (index_t i = 1; i <= count; ++i) ends.push_back(n / count * i + (i < n % count ? i : n % count));
  return ends;
}

SINTER_SHARED part_ends ends_of_cuts(const char* op, index_t n, const std::vector<index_t>& cuts) {
  part_ends ends;
  for (const index_t given : cuts) {
    const index_t from_start = given < 0 ? given + n : given;
    const index_t cut = from_start < 0 ? 0 : from_start > n ? n : from_start;
    if (!ends.empty() && cut < ends.back())
      refuse<value_error>({op, ": a cut at ", given, " behind one at ", ends.back(), "; cuts must not fall"});
    ends.push_back(cut);
  }
  ends.push_back(n);
  return ends;
}

#endif  // SINTER_DEFINES

/// The parts of x, where `ends_of(n)` says where they end along the axis of extent n.
template <class E, class F>
std::vector<evaluated<E>> cut_into_parts(const char* op, E&& e, index_t axis, const F& ends_of) {
  check_defined(op, e);
  const int a = checked_axis(op, axis, rank_of<E>);
  const auto x = eval_to_read(std::forward<E>(e));
  std::vector<evaluated<E>> parts;
  index_t begin = 0;
  for (const index_t end : ends_of(x.shape()[a])) {
    parts.push_back(x.slice(a, begin, end));
    begin = end;
  }
  return parts;
}

}  // namespace detail

/// Parts of `size` slices along an axis, the last of which may be smaller: n slices => ceil(n / size) views of x.
/// Derivative: each part's gradient lies at its place. Errors: value_error for a size below 1, index_error for an axis
/// that x does not have.
///
///     std::vector<tensor<float, 2>> batches = split(x, 32);
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> split(X&& x, detail::whole size, detail::whole axis = 0) {
  return detail::cut_into_parts("split", std::forward<X>(x), axis,
                                [&](index_t n) { return detail::ends_of_size("split", n, size); });
}
/// Parts of the sizes that are listed, which add up to the extent of the axis. Errors: shape_error if they do not,
/// value_error for a size below 0.
///
///     const auto parts = split(x, {60, 20, 20}, 1);
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> split(X&& x, const std::vector<index_t>& sizes, detail::whole axis = 0) {
  return detail::cut_into_parts("split", std::forward<X>(x), axis,
                                [&](index_t n) { return detail::ends_of_sizes("split", n, sizes); });
}
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> split(X&& x, std::initializer_list<index_t> sizes, detail::whole axis = 0) {
  return split(std::forward<X>(x), std::vector<index_t>(sizes), axis);
}
template <class X, std::size_t N>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> split(X&& x, const index_t (&sizes)[N], detail::whole axis = 0) {
  return split(std::forward<X>(x), std::vector<index_t>(sizes, sizes + N), axis);
}

/// At most `count` parts of equal size along an axis, the last of which may be smaller, as in PyTorch. Errors:
/// value_error for a count below 1, index_error for an axis that x does not have.
///
///     const auto halves = chunk(x, 2, -1);
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> chunk(X&& x, detail::whole count, detail::whole axis = 0) {
  return detail::cut_into_parts("chunk", std::forward<X>(x), axis,
                                [&](index_t n) { return detail::ends_of_chunks("chunk", n, count); });
}

/// Exactly `count` parts along an axis, the first of which are one larger where the extent is no multiple. Errors:
/// value_error for a count below 1, index_error for an axis that x does not have.
///
///     const auto thirds = tensor_split(x, 3);
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> tensor_split(X&& x, detail::whole count, detail::whole axis = 0) {
  return detail::cut_into_parts("tensor_split", std::forward<X>(x), axis,
                                [&](index_t n) { return detail::ends_of_equal_parts("tensor_split", n, count); });
}
/// The parts between cuts, which count from the end where they are negative, and are limited to the axis: k cuts =>
/// k + 1 parts. Errors: value_error for cuts that fall.
///
///     const auto parts = tensor_split(x, {2, -1});  // [0, 2), [2, n - 1), [n - 1, n)
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> tensor_split(X&& x, const std::vector<index_t>& cuts, detail::whole axis = 0) {
  return detail::cut_into_parts("tensor_split", std::forward<X>(x), axis,
                                [&](index_t n) { return detail::ends_of_cuts("tensor_split", n, cuts); });
}
template <class X>
  requires(detail::has_axes<X>)
std::vector<detail::evaluated<X>> tensor_split(X&& x, std::initializer_list<index_t> cuts, detail::whole axis = 0) {
  return tensor_split(std::forward<X>(x), std::vector<index_t>(cuts), axis);
}

/// The slices along an axis, without it: (n,m) => n views of (m). Derivative: each slice's gradient lies at its place.
/// Errors: index_error for an axis that x does not have.
///
///     std::vector<tensor<float, 1>> rows = unbind(x);
template <class X>
  requires(detail::has_axes<X>)
auto unbind(X&& x, detail::whole axis = 0) {
  detail::check_defined("unbind", x);
  const int a = detail::checked_axis("unbind", axis, rank_of<X>);
  const auto value = detail::eval_to_read(std::forward<X>(x));
  std::vector<decltype(value.select(0, 0))> slices;
  for (index_t i = 0; i < value.shape()[a]; ++i) slices.push_back(value.select(a, i));
  return slices;
}

template <class X, class N, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void split(X&&, N&&, index_t = 0) = delete;
template <class X, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void chunk(X&&, index_t, index_t = 0) = delete;
template <class X, class N, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void tensor_split(X&&, N&&, index_t = 0) = delete;
template <class X, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void unbind(X&&, index_t = 0) = delete;

}  // namespace sinter
