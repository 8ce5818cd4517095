// sinter/ops/diff.hpp: differences of neighbours.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

/// x[i + 1] - x[i] along an axis, n times one after the other: (…,m,…) => (…,m-n,…), nothing where n is m or more.
/// Runs at once. Derivative: what each element adds to its two differences. Errors: value_error for an n below 0,
/// index_error for an axis that x does not have.
///
///     tensor steps = diff(x);
template <class X>
  requires(detail::has_axes<X> && !std::is_same_v<element_of<X>, bool>)
detail::evaluated<X> diff(X&& x, detail::whole n = 1, detail::whole axis = -1) {
  detail::check_defined("diff", x);
  const int a = detail::checked_axis("diff", axis, rank_of<X>);
  index_t times = n;
  if (times < 0) detail::refuse<value_error>({"diff: ", times, " times; it must be 0 or more"});
  detail::evaluated<X> value = detail::eval_to_read(std::forward<X>(x));
  for (; times > 0 && value.shape()[a] > 0; --times) {
    const index_t m = value.shape()[a];
    value = eval(value.slice(a, 1, m) - value.slice(a, 0, m - 1));
  }
  return value;
}
template <class X, class Problem = typename detail::axes_mistake<X>::problem,
          class Fix = typename detail::axes_mistake<X>::fix>
void diff(X&&, index_t = 1, index_t = -1) = delete;

}  // namespace sinter
