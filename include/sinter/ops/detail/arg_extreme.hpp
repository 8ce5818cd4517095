// sinter/ops/detail/arg_extreme.hpp: what argmax and argmin have in common: which of several equal elements they name.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

/// Behind the operands of argmax and argmin.
///
///     argmax(x, 1, {.select_last = true});
struct arg_options {
  bool select_last = false;  ///< of elements that are equal, and of NaN, the last instead of the first
};

namespace detail {

template <class Op, int R, class E>
auto arg_extreme_of(const E& e, const axis_set& axes, const arg_options& o) {
  check_defined(Op::name, e);
  const no_grad guard;
  const auto given = eval_to_read(e);
  auto x = untrack(given);
  if (!o.select_last) return eval(make_reduction<Op, R>(x, axes));
  for (int d = 0; d < rank_of<E>; ++d)
    if constexpr (rank_of<E> > 0)
      if (axes.has[d]) x = x.flip(d);
  return eval(count_reduced(x, axes) - 1 - make_reduction<Op, R>(x, axes));
}

}  // namespace detail
}  // namespace sinter
