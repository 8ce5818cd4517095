// sinter/ops/prod.hpp: the product along axes.
#pragma once

#include <limits>

#include "sinter/ops/abs.hpp"
#include "sinter/ops/all.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/cumprod.hpp"
#include "sinter/ops/detail/reduction.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/logical_and.hpp"

namespace sinter {
namespace ops {

struct prod_op {
  static constexpr const char* name = "prod";
  static constexpr bool needs_values = false;
  template <class T>
  static constexpr bool accepts = true;
  template <class T>
  using reducer = sinter::detail::prod_reducer<T>;
  struct seed : sinter::detail::seed_base {
    static constexpr unsigned grad_uses[3] = {uses::first | uses::second | uses::third, uses::nothing, uses::nothing};
    /// `others`: see aux().
    template <int I, class G, class X, class Y, class O, class R>
    SINTER_WORD static auto grad(const G& g, const X& x, const Y& product, const O& others, const R&) {
      return g * select(is_divisible(product), product / x, others);
    }
  };
  /// True if dividing the product by an element leaves the product of the others: it is finite, normal and not 0, and
  /// then so is every element, or subnormal.
  template <class Y>
  SINTER_WORD static auto is_divisible(const Y& product) {
    using limits = std::numeric_limits<math::element_t<Y>>;
    const auto size = abs(product);
    return logical_and(size >= limits::min(), size <= limits::max());
  }
  /// The product of all elements but each one. Where all products can be divided, which the host looks up, the products
  /// stand for it.
  template <class E, class R>
  static R aux(const E& e, const R& result, const sinter::detail::axis_set& axes) {
    using D = device_of<R>;
    if constexpr (is_cpu_v<D>) {
      using limits = std::numeric_limits<element_of<R>>;
      const auto size = abs(result);
      if (all(size >= limits::min() && size <= limits::max()).item()) return result;
    }
    return products_of_others(sinter::detail::untrack(e), axes);
  }
  /// With P the products over the axes so far, each further axis contributes what lies before an element times what
  /// lies behind it: no element is divided by. In double, as products are gathered.
  template <class E>
  static auto products_of_others(const E& e, const sinter::detail::axis_set& axes) {
    using sinter::detail::scan_now;
    using D = device_of<E>;
    constexpr int R = rank_of<E>;
    tensor<double, R, D> others = ones<double, D>(sinter::detail::ones_extents<R>());
    tensor<double, R, D> product = cast<double>(e);
    if constexpr (R > 0) {
      for (int a = 0; a < R; ++a) {
        const index_t n = product.shape()[a];
        if (!axes.has[a]) continue;
        if (n == 0) return tensor<element_of<E>, R, D>(cast<element_of<E>>(product));
        const auto before = scan_now<cumprod_op>(product, a);
        const auto behind = scan_now<cumprod_op>(product.flip(a), a).flip(a);
        const auto rest = ones_like(product);
        rest.slice(a, 1, n) = before.slice(a, 0, n - 1);
        rest.slice(a, 0, n - 1) *= behind.slice(a, 1, n);
        others = others * rest;
        product = before.slice(a, n - 1, n);
      }
    }
    return tensor<element_of<E>, R, D>(cast<element_of<E>>(others));
  }
};

}  // namespace ops

/// The product of all elements, along one axis, or along a list of axes; with keepdim they stay with extent 1. Integers
/// and bool multiply to int64. Derivative: g times the product of the other elements, whatever they are:
/// zeros, infinities and NaN too.
///
///     tensor volume = prod(extents, 1);
SINTER_REDUCTION(prod, ops::prod_op)

}  // namespace sinter
