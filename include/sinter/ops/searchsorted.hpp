// sinter/ops/searchsorted.hpp: searchsorted and bucketize, where values belong among sorted ones, and isin.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/sort.hpp"

namespace sinter {

// Names in messages.
struct use_sorted_elements_of_rank_1_or_of_the_rank_of_the_values;
struct use_boundaries_of_rank_1;

namespace ops {

/// How many elements of the sorted ones stand before x: those that are less, or with `right` those that are not
/// greater. NaN is the largest element, and stands behind all.
template <class T>
SINTER_WORD index_t place_among(const T* sorted, index_t n, T x, bool right) {
  index_t begin = 0, end = n;
  while (begin < end) {
    const index_t middle = begin + (end - begin) / 2;
    if (x != x || (right ? sorted[middle] <= x : sorted[middle] < x)) begin = middle + 1;
    else end = middle;
  }
  return begin;
}

/// y = the places of values among sorted elements: those of their own line, or all in the only one.
struct search_op : kernel_op {
  static constexpr const char* name = "searchsorted";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <device D>
  static constexpr bool has_kernels_on = true;
  template <class...>
  using result = std::int64_t;
  static constexpr int rank(int, int values) { return values; }

  const char* called;
  bool right;
  search_op(const char* by, bool upper) : called(by), right(upper) {}

  template <int S, int R>
  const extents<R>& shape(const extents<S>& sorted, const extents<R>& values) const {
    if constexpr (S > 1)
      for (int d = 0; d < S - 1; ++d)
        if (sorted[d] != values[d])
          sinter::detail::refuse<shape_error>({called, ": sorted elements of shape ", sorted, " for values of shape ",
                                               values, "; only the last axis may differ"});
    return values;
  }
  template <class S, class V>
  static constexpr auto mistake() {
    using namespace sinter::detail;
    if constexpr (!std::is_same_v<element_of<S>, element_of<V>>)
      return sinter::detail::mistake<mixed_element_types<element_of<S>, element_of<V>>,
                                     convert_one_operand_with_cast>{};
    else if constexpr (rank_of<S> != 1 && rank_of<S> != rank_of<V>)
      return sinter::detail::mistake<operands_of_ranks<rank_of<S>, rank_of<V>>,
                                     use_sorted_elements_of_rank_1_or_of_the_rank_of_the_values>{};
    else return fitting<element_of<V>>{};
  }
};

}  // namespace ops

/// Where each value would stand in `sorted`, elements in ascending order along the last axis: how many of them are
/// less, or with right = true how many are not greater. int64, with the shape of the values. `sorted` has rank 1, or
/// the shape of the values but for the last axis: then each line is searched for the values of its own. Both have one
/// element type; NaN counts as larger than all numbers. As torch.searchsorted. No derivative. Errors: shape_error. That
/// the elements are sorted is not checked.
///
///     tensor places = searchsorted(limits, x);
template <class S, class V>
  requires detail::takes_operands<ops::search_op, S, V>
auto searchsorted(S&& sorted, V&& values, bool right = false) {
  return detail::make_kernel(ops::search_op("searchsorted", right), std::forward<S>(sorted), std::forward<V>(values));
}
/// The same of elements in any order, with the indices along the last axis that argsort gives of them. Errors:
/// shape_error, index_error as gather.
///
///     tensor places = searchsorted(limits, x, argsort(limits));
template <class S, class V, class I>
  requires(detail::takes_operands<ops::search_op, S, V> && detail::is_fitting<detail::gather_mistake<S, I>>)
auto searchsorted(const S& elements, V&& values, const I& sorter, bool right = false) {
  return searchsorted(gather(elements, -1, sorter), std::forward<V>(values), right);
}
SINTER_BINARY_KERNEL_REJECTIONS(searchsorted, ops::search_op)

namespace detail {

template <class X, class B>
constexpr auto find_bucketize_mistake() {
  using judged = kernel_check<ops::search_op, B, X>;
  if constexpr (is_fitting<judged> && rank_of<B> != 1)
    return mistake<operands_of_ranks<rank_of<X>, rank_of<B>>, use_boundaries_of_rank_1>{};
  else return judged{};
}
template <class X, class B>
using bucketize_mistake = decltype(find_bucketize_mistake<X, B>());

}  // namespace detail

/// The number of the bucket of each value, int64: i where boundaries[i - 1] < x <= boundaries[i], or with right = true
/// where boundaries[i - 1] <= x < boundaries[i]. The boundaries ascend; they have rank 1 and the element type of x.
/// That is searchsorted(boundaries, x, right).
///
///     tensor decade = bucketize(years, boundaries);
template <class X, class B>
  requires(detail::is_fitting<detail::bucketize_mistake<X, B>>)
auto bucketize(X&& x, B&& boundaries, bool right = false) {
  return detail::make_kernel(ops::search_op("bucketize", right), std::forward<B>(boundaries), std::forward<X>(x));
}
SINTER_REJECTIONS_OF_TWO(bucketize, detail::bucketize_mistake)

/// Is each element one of these values? A mask of bool with the shape of x; no NaN is. Every element type that sort
/// takes. Runs at once. No derivative.
///
///     tensor kept = isin(labels, wanted);
template <class X, class V>
  requires(detail::takes_operands<ops::search_op, V, X> && !narrow_element<element_of<X>>)
tensor<bool, detail::bare<X>::rank, device_of<X>> isin(const X& x, const V& values) {
  using D = device_of<X>;
  detail::check_defined("isin", x);
  detail::check_defined("isin", values);
  const no_grad guard;
  const auto from = detail::plain(eval(values)).flatten();
  const auto of = detail::plain(eval(x));
  if (from.numel() == 0) return zeros<bool, D>(of.shape());
  const auto sorted = sort(from).values;
  const index_t last = from.numel() - 1;
  const tensor<std::int64_t, 1, D> places = minimum(searchsorted(sorted, of.flatten()), last);
  return gather(sorted, 0, places).reshape(of.shape()) == of;
}
template <class X, class V, class Problem = typename detail::kernel_check<ops::search_op, V, X>::problem,
          class Fix = typename detail::kernel_check<ops::search_op, V, X>::fix>
void isin(X&&, V&&) = delete;

}  // namespace sinter
