// sinter/ops/detail/add_in.hpp: sums that are gathered in a wider type than that of the gradient they are added to.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"

namespace sinter::detail {

/// to += what add(sums) adds to zeros of type Wide.
template <class Wide, class T, int R, device D, class F>
void add_in(const tensor<T, R, D>& to, const F& add) {
  const auto sums = zeros<Wide, D>(to.shape());
  add(sums);
  to.in_place() += cast<T>(sums);
}
/// add(to), or for half and bfloat16 the same in float.
template <class T, int R, device D, class F>
void add_in_float(const tensor<T, R, D>& to, const F& add) {
  if constexpr (narrow_element<T>) add_in<float>(to, add);
  else add(to);
}

}  // namespace sinter::detail
