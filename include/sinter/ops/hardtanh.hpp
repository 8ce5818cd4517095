// sinter/ops/hardtanh.hpp: the identity between two limits.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

template <class T>
struct hardtanh_op : real_op {
  static constexpr const char* name = "hardtanh";
  static constexpr unsigned grad_uses[1] = {uses::result};
  T low;
  T high;

  template <class V>
  SINTER_WORD V apply(V x) const {
    return math::min(math::max(x, low), high);
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD auto grad(const G& g, const X&, const Y& y) const {
    return select(logical_or(y <= low, y >= high), zero_of(g), g);
  }
};

}  // namespace ops

/// x limited to [low, high], elementwise, floating point; NaN stays NaN. Derivative: 0 where x <= low or x >= high,
/// otherwise g. low must not be above high. clamp takes other element types, and tensors as limits.
///
///     tensor y = hardtanh(x);
template <real_expression A>
auto hardtanh(A&& x, double low = -1, double high = 1) {
  if (!(low <= high)) detail::refuse<value_error>({"hardtanh: low must not be above high"});
  using T = compute_type<element_of<A>>;
  return detail::make_map(ops::hardtanh_op<T>{{}, detail::literal_value<T>(low), detail::literal_value<T>(high)},
                          std::forward<A>(x));
}
SINTER_REAL_ONLY(hardtanh)

}  // namespace sinter
