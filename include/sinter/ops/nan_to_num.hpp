// sinter/ops/nan_to_num.hpp: numbers in place of NaN and infinities.
#pragma once

#include <limits>
#include <optional>

#include "sinter/ops/isfinite.hpp"
#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct nan_to_num_op : real_op {
  static constexpr const char* name = "nan_to_num";
  static constexpr unsigned grad_uses[1] = {uses::first};
  T nan, above, below;

  template <class V>
  SINTER_WORD V apply(V x) const {
    const V finite_or_nan = math::select(math::isinf(x), math::select(x > 0, V(above), V(below)), x);
    return math::select(math::isnan(x), V(nan), finite_or_nan);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X& x, const Y&) const {
    return select(isfinite(x), g, zero_of(g));
  }
};

}  // namespace ops

/// x with `nan` in place of NaN, and `posinf` and `neginf` in place of infinities, which are the largest and the least
/// finite number where they are not given; elementwise, floating point. Derivative: g where x is finite, otherwise 0.
///
///     tensor y = nan_to_num(x);
template <real_expression A>
auto nan_to_num(A&& x, double nan = 0, std::optional<double> posinf = std::nullopt,
                std::optional<double> neginf = std::nullopt) {
  using E = element_of<A>;
  using T = compute_type<E>;
  using limits = std::numeric_limits<E>;
  const auto or_else = [](const std::optional<double>& given, E otherwise) {
    return given ? static_cast<T>(*given) : static_cast<T>(otherwise);
  };
  return detail::make_map(
      ops::nan_to_num_op<T>{{}, static_cast<T>(nan), or_else(posinf, limits::max()), or_else(neginf, limits::lowest())},
      std::forward<A>(x));
}
SINTER_REAL_ONLY(nan_to_num)

}  // namespace sinter
