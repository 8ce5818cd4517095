// sinter/nn/prelu.hpp: the rectifier that learns its slopes below 0.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops/prelu.hpp"

namespace sinter::nn {

/// sinter::prelu with one slope, or one for each channel, as torch.nn.PReLU.
///
///     nn::prelu learned(64);
template <floating_element T = float, device D = cpu, class Kind = tracked>
struct prelu : module<prelu<T, D, Kind>> {
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = prelu<T, To, K>;

  prelu() : prelu(1) {}
  explicit prelu(index_t slopes, double initially = 0.25) {
    if (slopes < 1) sinter::detail::refuse<shape_error>({"prelu: ", slopes, " slopes; there must be 1 or more"});
    weight = full<T, D>(extents<1>{{slopes}}, initially);
  }

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::prelu_mistake<X, decltype(weight)>{};
  }
  template <class X>
  auto forward(X&& x) const {
    return sinter::prelu(std::forward<X>(x), weight);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("weight", m.weight...);
  }

  parameter<T, 1, D, Kind> weight;
};

}  // namespace sinter::nn
