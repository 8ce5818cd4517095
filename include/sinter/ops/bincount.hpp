// sinter/ops/bincount.hpp: how often each integer occurs.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"

namespace sinter {

template <int>
struct counted_values_of_rank;
struct flatten_them_to_rank_1;

namespace ops {

/// kernels<count_op, D>::run(op, e, counts): counts[v] += how often e, of int64 elements, is v. Other values do not
/// count.
struct count_op {
  template <device D>
  static constexpr bool has_kernels_on = true;
};

}  // namespace ops

namespace detail {

/// How often each of 0, ..., bins - 1 occurs in e, an int64 expression without points.
template <class E>
tensor<std::int64_t, 1, device_of<E>> counts_of(const E& e, index_t bins) {
  const auto counts = zeros<std::int64_t, device_of<E>>({bins});
  if (bins > 0 && e.shape().numel() > 0) kernels<ops::count_op, device_of<E>>::run({}, e, counts);
  return counts;
}

template <class E>
constexpr auto find_bincount_mistake() {
  if constexpr (!expression<E>) return no_operands<E>{};
  else if constexpr (!integer_element<element_of<E>>)
    return mistake<element_type_without_this_op<element_of<E>>, use_another_element_type_or_cast>{};
  else if constexpr (rank_of<E> != 1) return mistake<counted_values_of_rank<rank_of<E>>, flatten_them_to_rank_1>{};
  else return fitting<element_of<E>>{};
}
template <class E>
using bincount_mistake = decltype(find_bincount_mistake<bare<E>>());

}  // namespace detail

/// How often 0, 1, 2, ... occur among the elements of x, which has rank 1 and any integer type: int64, up to the
/// largest element and at least minlength long. Runs at once, and waits for the largest element. No derivative. Errors:
/// value_error for a negative element or minlength.
///
///     tensor per_class = bincount(labels, 10);  // or {.minlength = 10}
template <class E>
  requires(detail::is_fitting<detail::bincount_mistake<E>>)
tensor<std::int64_t, 1, device_of<E>> bincount(const E& x, index_t minlength = 0) {
  detail::check_defined("bincount", x);
  if (minlength < 0) detail::refuse<value_error>({"bincount: minlength ", minlength, " is negative"});
  const tensor<std::int64_t, 1, device_of<E>> values = cast<std::int64_t>(x);
  index_t bins = minlength;
  if (values.numel() > 0) {
    const std::int64_t least = eval(min(values)).item(), most = eval(max(values)).item();
    if (least < 0)
      detail::refuse<value_error>({"bincount: element ", least, " is negative; shift the elements to start at 0"});
    if (most > std::numeric_limits<index_t>::max() / 16)
      detail::refuse<value_error>(
          {"bincount: element ", most, " would need more bins than there is memory for; unique() counts such values"});
    if (most >= bins) bins = most + 1;
  }
  return detail::counts_of(values, bins);
}
template <class E>
  requires(detail::is_fitting<detail::bincount_mistake<E>>)
tensor<std::int64_t, 1, device_of<E>> bincount(const E& x, const bincount_options& o) {
  return bincount(x, o.minlength);
}
template <class E, class Problem = typename detail::bincount_mistake<E>::problem,
          class Fix = typename detail::bincount_mistake<E>::fix>
void bincount(E&&, index_t = 0) = delete;
template <class E, class Problem = typename detail::bincount_mistake<E>::problem,
          class Fix = typename detail::bincount_mistake<E>::fix>
void bincount(E&&, const bincount_options&) = delete;

}  // namespace sinter
