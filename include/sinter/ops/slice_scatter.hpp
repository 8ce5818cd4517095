// sinter/ops/slice_scatter.hpp: slice_scatter, select_scatter and diagonal_scatter, a tensor with a part of it
// replaced.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/grad/with_gradient.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/detail/scatter.hpp"

namespace sinter {

// Names in messages.
template <int>
struct use_a_part_of_rank;

namespace detail {

/// Of x and what replaces a part of it that has `Dropped` axes fewer.
template <class X, class S, int Least, int Dropped>
constexpr auto find_part_mistake() {
  if constexpr (!has_axes<X, Least>) return axes_mistake<X, Least>{};
  else if constexpr (!has_axes<S, 0>) return axes_mistake<S, 0>{};
  else if constexpr (!is_fitting<source_mistake<X, S>>) return source_mistake<X, S>{};
  else if constexpr (rank_of<S> != rank_of<X> - Dropped)
    return mistake<operands_of_ranks<rank_of<X>, rank_of<S>>, use_a_part_of_rank<rank_of<X> - Dropped>>{};
  else return fitting<element_of<X>>{};
}
template <class X, class S, int Least, int Dropped>
using part_mistake = decltype(find_part_mistake<bare<X>, bare<S>, Least, Dropped>());
template <class X, class S, int Least, int Dropped>
concept replaces_part = is_fitting<part_mistake<X, S, Least, Dropped>>;

/// A copy of x in which src is what `view` shows of it.
template <class X, class S, class View>
auto with_part(const char* op, X&& x, S&& src, const View& view) {
  check_defined(op, x);
  check_defined(op, src);
  const auto replace = with_gradient(
      [=](const auto& whole, const auto& part) {
        const auto copy = whole.clone();
        const auto shown = view(copy);
        if (!(shown.shape() == part.shape()))
          refuse<shape_error>({op, ": a source of shape ", part.shape(), " for a part of shape ", shown.shape()});
        shown.in_place() = part;
        return copy;
      },
      [view](const auto& g) {
        const auto rest = g.clone();
        view(rest) = 0;
        return gradients(rest, view(g));
      },
      op);
  return replace(std::forward<X>(x), std::forward<S>(src));
}

}  // namespace detail

/// x with src in place of x.slice(axis, begin, end, step), of whose shape and element type it is. Runs at once.
/// Derivative: g to x, but 0 in that part; the g of the part to src. Errors: shape_error for another shape, index_error
/// and value_error as slice.
///
///     tensor framed = slice_scatter(x, border, 0, 0, 2);
template <class X, class S>
  requires detail::replaces_part<X, S, 1, 0>
auto slice_scatter(X&& x, S&& src, detail::whole axis, detail::whole begin, detail::whole end, detail::whole step = 1) {
  return detail::with_part("slice_scatter", std::forward<X>(x), std::forward<S>(src),
                           [=](const auto& t) { return t.slice(axis, begin, end, step); });
}
/// x with src in place of x.select(axis, i), of whose shape and element type it is. Runs at once. Derivative: as
/// slice_scatter. Errors: shape_error for another shape, index_error as select.
///
///     tensor y = select_scatter(x, row, 0, -1);
template <class X, class S>
  requires detail::replaces_part<X, S, 1, 1>
auto select_scatter(X&& x, S&& src, detail::whole axis, detail::whole i) {
  return detail::with_part("select_scatter", std::forward<X>(x), std::forward<S>(src),
                           [=](const auto& t) { return t.select(axis, i); });
}
/// x with src in place of x.diagonal(offset, axis_a, axis_b), of whose shape and element type it is. Runs at once.
/// Derivative: as slice_scatter. Errors: shape_error for another shape, index_error as diagonal.
///
///     tensor y = diagonal_scatter(x, ones<float>({n}));
template <class X, class S>
  requires detail::replaces_part<X, S, 2, 1>
auto diagonal_scatter(X&& x, S&& src, detail::whole offset = 0, detail::whole axis_a = 0, detail::whole axis_b = 1) {
  return detail::with_part("diagonal_scatter", std::forward<X>(x), std::forward<S>(src),
                           [=](const auto& t) { return t.diagonal(offset, axis_a, axis_b); });
}

template <class X, class S, class Problem = typename detail::part_mistake<X, S, 1, 0>::problem,
          class Fix = typename detail::part_mistake<X, S, 1, 0>::fix>
void slice_scatter(X&&, S&&, index_t, index_t, index_t, index_t = 1) = delete;
template <class X, class S, class Problem = typename detail::part_mistake<X, S, 1, 1>::problem,
          class Fix = typename detail::part_mistake<X, S, 1, 1>::fix>
void select_scatter(X&&, S&&, index_t, index_t) = delete;
template <class X, class S, class Problem = typename detail::part_mistake<X, S, 2, 1>::problem,
          class Fix = typename detail::part_mistake<X, S, 2, 1>::fix>
void diagonal_scatter(X&&, S&&, index_t = 0, index_t = 0, index_t = 1) = delete;

}  // namespace sinter
