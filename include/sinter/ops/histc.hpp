// sinter/ops/histc.hpp: the histogram of a tensor.
#pragma once

#include <cmath>

#include "sinter/ops/bincount.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/floor.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/minimum.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/where.hpp"

namespace sinter {

/// How many elements lie in each of `bins` intervals of equal width from low to high, both included, in x's element
/// type: float or double, any shape => (bins,). Elements outside and NaN do not count. Where low equals high, the
/// extremes of x take their place. Elementwise work on x is part of the count. Runs at once. No derivative. Errors:
/// value_error for fewer than one bin and for a range that is empty or not finite.
///
///     tensor brightness = histc(x, 256, 0, 1);
template <expression E>
  requires(floating_element<element_of<E>> && !narrow_element<element_of<E>>)
tensor<element_of<E>, 1, device_of<E>> histc(E&& x, index_t bins = 100, double low = 0, double high = 0) {
  detail::check_defined("histc", x);
  if (bins < 1) detail::refuse<value_error>({"histc: ", bins, " bins; there must be at least 1"});
  const no_grad guard;
  const auto e = detail::untrack(detail::prologue(std::forward<E>(x)));
  if (low == high && e.shape().numel() > 0) {
    low = static_cast<double>(eval(min(e)).item());
    high = static_cast<double>(eval(max(e)).item());
  }
  if (low == high) {
    low -= 1;
    high += 1;
  }
  if (!(low < high) || !std::isfinite(high - low))
    detail::refuse<value_error>({"histc: the range [", low, ", ", high, "] is empty or not finite"});
  const auto bin = minimum(floor((e - low) / (high - low) * bins), bins - 1);
  return cast<element_of<E>>(detail::counts_of(cast<std::int64_t>(where(e >= low && e <= high, bin, -1)), bins));
}
SINTER_REAL_ONLY(histc)

}  // namespace sinter
