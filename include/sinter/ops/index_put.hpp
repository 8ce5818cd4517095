// sinter/ops/index_put.hpp: index_get and index_put read and write at coordinates, take and take_along_dim pick
// elements by indices that may count from the end.
#pragma once

#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/nonzero.hpp"
#include "sinter/ops/scatter.hpp"

namespace sinter {

// Names in messages.
template <int Indices, int Rank>
struct indices_of_axes_for_a_rank;
struct give_at_most_an_index_for_each_axis;
template <int>
struct result_of_rank;
struct flatten_the_indices_or_x;

namespace detail {

/// Indices as int64, those below 0 from the end of n.
template <class I>
auto from_the_end(const I& index, index_t n) {
  const auto i = cast<std::int64_t>(index);
  return tensor<std::int64_t, rank_of<I>, device_of<I>>(where(i < 0 && i >= -n, i + n, i));
}

/// The places of x's first N axes as one axis at which coordinates are, one index tensor for each, broadcast. Errors:
/// index_error.
template <int R, class I, std::size_t N>
auto places_of(const char* op, const extents<R>& x, const I (&indices)[N]) {
  const no_grad guard;
  for (const I& one : indices) check_defined(op, one);
  tensor<std::int64_t, rank_of<I>, device_of<I>> places;
  for (int d = 0; d < int{N}; ++d) {
    const auto i = from_the_end(plain(eval(indices[d])), x[d]);
    check_indices({op, "index"}, i, x[d]);
    if (d == 0) places = i;
    else places = eval(places * x[d] + i);
  }
  return places;
}
/// x's first N axes as one.
template <int N, int R>
extents<R - N + 1> joined_axes(const extents<R>& x) {
  extents<R - N + 1> shape;
  shape[0] = 1;
  for (int d = 0; d < R; ++d) {
    if (d < N) shape[0] *= x[d];
    else shape[d - N + 1] = x[d];
  }
  return shape;
}
/// The shape of what lies at `places`.
template <int N, int K, int R>
extents<K + R - N> shape_at(const extents<K>& places, const extents<R>& x) {
  extents<K + R - N> shape;
  for (int d = 0; d < K; ++d) shape[d] = places[d];
  for (int d = N; d < R; ++d) shape[K + d - N] = x[d];
  return shape;
}

/// Of x at coordinates of its first N axes, whose places have rank K.
template <class X, class I, int N, int K>
constexpr auto find_coordinates_mistake() {
  if constexpr (!is_fitting<beside_mistake<X, I>>) return beside_mistake<X, I>{};
  else if constexpr (!integer_element<element_of<I>> && !std::is_same_v<element_of<I>, bool>)
    return mistake<index_of_element_type<element_of<I>>, use_an_integer_index>{};
  else if constexpr ((rank_of<X>) < N)
    return mistake<indices_of_axes_for_a_rank<N, rank_of<X>>, give_at_most_an_index_for_each_axis>{};
  else if constexpr (K + rank_of<X> - N > max_rank)
    return mistake<result_of_rank<K + rank_of<X> - N>, flatten_the_indices_or_x>{};
  else return fitting<element_of<X>>{};
}
template <class X, class I, int N>
constexpr auto find_indices_mistake() {
  if constexpr (!expression<I>) return no_operands<X, I>{};
  else if constexpr (std::is_same_v<element_of<I>, bool>)
    return mistake<index_of_element_type<element_of<I>>, use_an_integer_index>{};
  else return find_coordinates_mistake<X, I, N, rank_of<I>>();
}
/// Of x at N index tensors, one for each of its first axes.
template <class X, class I, int N>
using indices_mistake = decltype(find_indices_mistake<bare<X>, bare<I>, N>());

template <class X, class M>
constexpr auto find_axes_mask_mistake() {
  if constexpr (!expression<M>) return no_operands<X, M>{};
  else if constexpr (!std::is_same_v<element_of<M>, bool>)
    return mistake<mask_with_elements_of_type<element_of<M>>, compare_with_zero_or_cast_to_bool>{};
  else return find_coordinates_mistake<X, M, rank_of<M>, 1>();
}
/// Of x at a mask of its first axes.
template <class X, class M>
using axes_mask_mistake = decltype(find_axes_mask_mistake<bare<X>, bare<M>>());

template <class X, class I, class V, int N>
constexpr auto find_put_mistake() {
  using at = indices_mistake<X, I, N>;
  if constexpr (!is_fitting<at>) return at{};
  else if constexpr (!is_fitting<source_mistake<X, V>>) return source_mistake<X, V>{};
  else if constexpr (literal<V>) return at{};
  else if constexpr ((rank_of<V>) > rank_of<I> + rank_of<X> - N)
    return mistake<operands_of_ranks<rank_of<X>, rank_of<I>, rank_of<V>>,
                   use_an_operand_of_rank<0, rank_of<I> + rank_of<X> - N>>{};
  else return at{};
}
template <class X, class I, class V, int N>
using put_mistake = decltype(find_put_mistake<bare<X>, bare<I>, bare<V>, N>());

template <class X, class I>
constexpr auto find_flat_index_mistake() {
  if constexpr (!expression<I>) return no_operands<X, I>{};
  else if constexpr (std::is_same_v<element_of<I>, bool>)
    return mistake<index_of_element_type<element_of<I>>, use_an_integer_index>{};
  else return find_coordinates_mistake<X, I, 0, 0>();
}
/// Of x, flattened, at indices of any rank.
template <class X, class I>
using index_mistake = decltype(find_flat_index_mistake<bare<X>, bare<I>>());

/// The slices of x, whose first axes are joined, at places: (places..., rest...).
template <int N, class X, int K, device D>
auto read_at(const char* op, X&& x, const tensor<std::int64_t, K, D>& places) {
  const auto value = eval_to_read(std::forward<X>(x));
  const extents<rank_of<X>> shape = value.shape();
  const auto rows = value.reshape(joined_axes<N>(shape));
  constexpr int L = rank_of<X> - N + 1;
  extents<L> line = ones_extents<L>(), all = rows.shape();
  line[0] = all[0] = places.numel();
  return eval(make_kernel(ops::gather_op(op, 0), rows, places.reshape(line).broadcast_to(all)))
      .reshape(shape_at<N>(places.shape(), shape));
}
/// x with values, broadcast to (places..., rest...), at places.
template <class Rule, int N, class X, int K, device D, class V>
auto write_at(const char* op, X&& x, const tensor<std::int64_t, K, D>& places, V&& values) {
  constexpr int L = rank_of<X> - N + 1;
  const auto value = eval_to_read(std::forward<X>(x));
  const extents<rank_of<X>> shape = value.shape();
  const auto rows = value.reshape(joined_axes<N>(shape));
  extents<L> all = rows.shape(), line = ones_extents<L>();
  line[0] = all[0] = places.numel();
  const auto index = places.reshape(line).broadcast_to(all);
  const ops::scatter_op<Rule> writing(op, 0, true);
  if constexpr (literal<V>) {
    return eval(make_kernel(writing, rows, scatter_source<element_of<X>, D>(values, all), index)).reshape(shape);
  } else {
    const auto wanted = shape_at<N>(places.shape(), shape);
    const auto given = eval_to_read(std::forward<V>(values));
    extents<rank_of<X> - N + K> merged = wanted;
    if (!broadcast_into(merged.values, merged.size(), given.shape().data(), rank_of<V>) || !(merged == wanted))
      refuse<shape_error>(
          {op, ": values of shape ", given.shape(), " do not broadcast to ", wanted, ", which the indices ask for"});
    return eval(make_kernel(writing, rows, eval(given.broadcast_to(wanted)).reshape(all), index)).reshape(shape);
  }
}

template <class Rule, class X, class I, std::size_t N, class V>
auto put_at(X&& x, const I (&indices)[N], V&& values) {
  check_defined("index_put", x);
  const auto places = places_of("index_put", extents<rank_of<X>>(x.shape()), indices);
  return write_at<Rule, int{N}>("index_put", std::forward<X>(x), places, std::forward<V>(values));
}

}  // namespace detail

/// The slices of x at coordinates, x[i, j] in PyTorch: index tensors of one type, of any integers, for as many of the
/// first axes as there are of them; their shapes broadcast. Shape: that of the indices, then the axes of x that have
/// none. Indices below 0 count from the end. Every element type. Runs at once. Derivative: g is added at the elements
/// that were read. Errors: index_error for an index outside of its axis, on a GPU as for gather.
///
///     tensor corners = index_get(x, {rows, columns});
template <class X, class I, std::size_t N>
  requires(detail::is_fitting<detail::indices_mistake<X, I, int{N}>>)
auto index_get(X&& x, const I (&indices)[N]) {
  detail::check_defined("index_get", x);
  const auto places = detail::places_of("index_get", extents<rank_of<X>>(x.shape()), indices);
  return detail::read_at<int{N}>("index_get", std::forward<X>(x), places);
}
/// The slices of x at which a mask of its first axes is true, in row-major order, x[mask] in PyTorch: of x (n,m,c) and
/// a mask (n,m) with k elements that are true => (k,c). Runs at once; it waits for their number, on a GPU for all work
/// before. Derivative: g at the slices that were read. Errors: shape_error for a mask of other extents.
///
///     tensor chosen = index_get(x, mask);
template <class X, class M>
  requires(detail::is_fitting<detail::axes_mask_mistake<X, M>>)
auto index_get(X&& x, const M& mask) {
  constexpr int N = rank_of<M>;
  detail::check_defined("index_get", x);
  detail::check_defined("index_get", mask);
  for (int d = 0; d < N; ++d)
    if (mask.shape()[d] != x.shape()[d])
      detail::refuse<shape_error>({"index_get: a mask of shape ", mask.shape(), " for x of shape ", x.shape()});
  return detail::read_at<N>("index_get", std::forward<X>(x), detail::true_places(mask));
}

/// x with values at coordinates, which are those of index_get; the values have x's element type and broadcast to the
/// shape that index_get gives, or are a number. Of equal coordinates the last one counts. Runs at once. Derivative: g
/// to x, but 0 at the coordinates; the g there to the values. Errors: shape_error, index_error for an index outside of
/// its axis, on a GPU as for gather.
///
///     tensor y = index_put(x, {rows, columns}, 0);
template <class X, class I, std::size_t N, class V>
  requires(detail::is_fitting<detail::put_mistake<X, I, V, int{N}>>)
auto index_put(X&& x, const I (&indices)[N], V&& values) {
  return detail::put_at<ops::scatter_rule::replace>(std::forward<X>(x), indices, std::forward<V>(values));
}
/// The same with values that are folded into what is there, in order, as scatter_reduce does: `how` is reduction::sum,
/// PyTorch's accumulate, or prod, max or min. Not for bool.
///
///     tensor y = index_put(x, {rows}, w, reduction::sum);
template <class X, class I, std::size_t N, class V, detail::reduces_scatter How>
  requires(detail::is_fitting<detail::put_mistake<X, I, V, int{N}>> && !std::is_same_v<element_of<X>, bool> &&
           !std::is_same_v<How, reduction::mean_t>)
auto index_put(X&& x, const I (&indices)[N], V&& values, [[maybe_unused]] How how) {
  return detail::put_at<typename detail::scatter_how<How>::rule>(std::forward<X>(x), indices, std::forward<V>(values));
}

template <class X, class I, std::size_t N, class Problem = typename detail::indices_mistake<X, I, int{N}>::problem,
          class Fix = typename detail::indices_mistake<X, I, int{N}>::fix>
void index_get(X&&, const I (&)[N]) = delete;
template <class X, class M, class Problem = typename detail::axes_mask_mistake<X, M>::problem,
          class Fix = typename detail::axes_mask_mistake<X, M>::fix>
void index_get(X&&, const M&) = delete;
template <class X, class I, std::size_t N, class V,
          class Problem = typename detail::put_mistake<X, I, V, int{N}>::problem,
          class Fix = typename detail::put_mistake<X, I, V, int{N}>::fix>
void index_put(X&&, const I (&)[N], V&&, auto&&...) = delete;

/// The elements of x, taken as one axis in row-major order, at indices of any shape and integer type; those below 0
/// count from the end. The result has the shape of index. Runs at once. Derivative: g is added at the elements that
/// were read. Errors: index_error for an index outside of x, on a GPU as for gather.
///
///     tensor y = take(x, indices);
template <class X, class I>
  requires(detail::is_fitting<detail::index_mistake<X, I>>)
auto take(X&& x, const I& index) {
  detail::check_defined("take", x);
  const auto flat = detail::eval_to_read(std::forward<X>(x)).flatten();
  return detail::read_at<1>("take", flat, detail::places_of("take", flat.shape(), {index}));
}

/// gather by indices that may count from the end, of x and an index whose other axes broadcast: y[i][j] =
/// x[i][index[i][j]] for axis 1, and so on. Without an axis both are flattened. Runs at once. Derivative: g is added at
/// the elements that were read. Errors: shape_error, index_error for an index outside of the axis, on a GPU as for
/// gather.
///
///     tensor ordered = take_along_dim(x, 1, argsort(x, 1));
template <class X, class I>
  requires(detail::is_fitting<detail::gather_mistake<X, I>>)
detail::evaluated<X> take_along_dim(X&& x, detail::whole axis, const I& index) {
  constexpr int R = rank_of<X>;
  detail::check_defined("take_along_dim", x);
  detail::check_defined("take_along_dim", index);
  const int a = detail::checked_axis("take_along_dim", axis, R);
  detail::evaluated<X> value = detail::eval_to_read(std::forward<X>(x));
  auto i = detail::from_the_end(detail::plain(eval(index)), value.shape()[a]);
  detail::check_indices({"take_along_dim", "index"}, i, value.shape()[a]);
  extents<R> from = value.shape(), to = i.shape();
  from[a] = to[a] = 1;
  const extents<R> both = detail::broadcast_shapes("take_along_dim", from, to);
  for (int d = 0; d < R; ++d) {
    from[d] = d == a ? value.shape()[d] : both[d];
    to[d] = d == a ? i.shape()[d] : both[d];
  }
  if (!(from == value.shape())) value = value.broadcast_to(from);
  return eval(detail::make_kernel(ops::gather_op("take_along_dim", a), value, i.broadcast_to(to)));
}
template <class X, class I>
  requires(detail::is_fitting<detail::index_mistake<X, I>>)
auto take_along_dim(X&& x, const I& index) {
  return take(std::forward<X>(x), eval(index).flatten());
}

template <class X, class I, class Problem = typename detail::index_mistake<X, I>::problem,
          class Fix = typename detail::index_mistake<X, I>::fix>
void take(X&&, I&&) = delete;
template <class X, class I, class Problem = typename detail::gather_mistake<X, I>::problem,
          class Fix = typename detail::gather_mistake<X, I>::fix>
void take_along_dim(X&&, index_t, I&&) = delete;

}  // namespace sinter
