// sinter/ops/lp_pool.hpp: the norm of each window, over one, two and three spatial axes.
#pragma once

#include "sinter/ops/avg_pool.hpp"
#include "sinter/ops/max_pool.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/pow.hpp"

namespace sinter {
namespace detail {

/// `pool` is avg_pool of N axes.
template <int N, class X, class Pool>
auto norms_of_windows(const char* op, const X& x, double p, const per_axis<N>& kernel, const max_pool_options<N>& o,
                      const Pool& pool) {
  if (!(p > 0)) refuse<value_error>({op, ": norm_type is ", p, "; it must be above 0"});
  avg_pool_options<N> means;
  means.stride = o.stride;
  means.padding = o.padding;
  means.ceil_mode = o.ceil_mode;
  means.dilation = o.dilation;
  double taps = 1;
  for (int d = 0; d < N; ++d) taps *= static_cast<double>(kernel[d]);
  return pow(pool(pow(x, p), kernel, means) * taps, 1 / p);
}

}  // namespace detail

/// The norm (sum x^p)^(1/p) of each window of x (N,C,H,W), as torch.nn.functional.lp_pool2d: without the sign taken
/// away, so that an odd norm_type p is for elements that are not negative. The options are those of max_pool2d; zeros
/// are padded. A last window in ceil mode counts as if its elements were the mean of all. Floating point. Derivative:
/// as of the formula; NaN for a window of zeros. Errors: as avg_pool2d, and value_error for a p that is not above 0.
///
///     tensor y = lp_pool2d(pictures, 2, 3, {.stride = 2});
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<2>, X>
auto lp_pool2d(const X& x, double norm_type, const per_axis<2>& kernel, const max_pool_options<2>& options = {}) {
  return detail::norms_of_windows<2>("lp_pool2d", x, norm_type, kernel, options,
                                     [](auto&& v, const auto&... o) { return avg_pool2d(std::move(v), o...); });
}
/// The norm of each window of x (N,C,L); see lp_pool2d.
///
///     tensor y = lp_pool1d(signals, 2, 3);
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<1>, X>
auto lp_pool1d(const X& x, double norm_type, const per_axis<1>& kernel, const max_pool_options<1>& options = {}) {
  return detail::norms_of_windows<1>("lp_pool1d", x, norm_type, kernel, options,
                                     [](auto&& v, const auto&... o) { return avg_pool1d(std::move(v), o...); });
}
/// The norm of each window of x (N,C,D,H,W); see lp_pool2d.
///
///     tensor y = lp_pool3d(volumes, 2, 3);
template <class X>
  requires detail::takes_operands<detail::avg_pool_op<3>, X>
auto lp_pool3d(const X& x, double norm_type, const per_axis<3>& kernel, const max_pool_options<3>& options = {}) {
  return detail::norms_of_windows<3>("lp_pool3d", x, norm_type, kernel, options,
                                     [](auto&& v, const auto&... o) { return avg_pool3d(std::move(v), o...); });
}

#define SINTER_LP_POOL_REJECTIONS(name, axes)                                                              \
  template <class X, class Problem = typename detail::kernel_check<detail::avg_pool_op<axes>, X>::problem, \
            class Fix = typename detail::kernel_check<detail::avg_pool_op<axes>, X>::fix>                  \
  void name(X&&, double, const per_axis<axes>&, const max_pool_options<axes>& = {}) = delete;
SINTER_LP_POOL_REJECTIONS(lp_pool1d, 1)
SINTER_LP_POOL_REJECTIONS(lp_pool2d, 2)
SINTER_LP_POOL_REJECTIONS(lp_pool3d, 3)
#undef SINTER_LP_POOL_REJECTIONS

}  // namespace sinter
