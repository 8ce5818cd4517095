// sinter/ops/one_hot.hpp: classes as lines with a single 1.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/max.hpp"

namespace sinter {
namespace detail {

template <class I>
constexpr auto find_one_hot_mistake() {
  if constexpr (is_assignment<I>) return operand_check<I>{};
  else if constexpr (!expression<I>) return no_operands<I>{};
  else if constexpr (reads_name<I>)
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (!integer_element<element_of<I>>)
    return mistake<index_of_element_type<element_of<I>>, use_an_integer_index>{};
  else if constexpr ((rank_of<I>) >= max_rank)
    return mistake<operands_of_ranks<rank_of<I>>, use_an_operand_of_rank<0, max_rank - 1>>{};
  else return fitting<element_of<I>>{};
}
template <class I>
using one_hot_mistake = decltype(find_one_hot_mistake<bare<I>>());

}  // namespace detail

/// 1 where a new last axis counts to the class, 0 elsewhere: classes (…) => int64 (…,n). They have any integer type.
/// Without n it is the largest class and one, for which the host waits. No derivative. As
/// torch.nn.functional.one_hot. Errors: index_error for a class outside [0, n), on a GPU as for gather.
///
///     tensor targets = cast<float>(one_hot(labels, 10));
template <class I>
  requires(detail::is_fitting<detail::one_hot_mistake<I>>)
tensor<std::int64_t, detail::bare<I>::rank + 1, device_of<I>> one_hot(const I& classes, detail::whole n = -1) {
  detail::check_defined("one_hot", classes);
  const no_grad guard;
  const tensor<std::int64_t, rank_of<I>, device_of<I>> i = cast<std::int64_t>(classes);
  index_t count = n;
  if (count < -1) detail::refuse<value_error>({"one_hot: ", count, " classes; give 0 or more, or none"});
  if (count == -1) count = i.numel() > 0 ? eval(max(i)).item() + 1 : 0;
  detail::check_indices({"one_hot", "class"}, i.contiguous(), count);
  return cast<std::int64_t>(i.unsqueeze(-1) == arange<std::int64_t, device_of<I>>(count));
}
template <class I, class Problem = typename detail::one_hot_mistake<I>::problem,
          class Fix = typename detail::one_hot_mistake<I>::fix>
void one_hot(I&&, index_t = -1) = delete;

}  // namespace sinter
