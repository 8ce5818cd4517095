// sinter/ops/nonzero.hpp: nonzero and argwhere, where elements are that are not 0.
#pragma once

#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/floor_divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

namespace ops {

/// kernels<true_places_op, D>::run(op, mask): the places of a dense mask, in row-major order, at which it is true.
struct true_places_op {
  template <device D>
  static constexpr bool has_kernels_on = true;
};

}  // namespace ops

namespace detail {

/// Where e, of bool, is true: places in row-major order, ascending. Waits for their number.
template <class E>
tensor<std::int64_t, 1, device_of<E>> true_places(const E& e) {
  const no_grad guard;
  const auto mask = plain(eval(e)).contiguous().flatten();
  if (mask.numel() == 0) return zeros<std::int64_t, device_of<E>>({0});
  return kernels<ops::true_places_op, device_of<E>>::run({}, mask);
}

template <class E>
tensor<std::int64_t, 2, device_of<E>> coordinates_of_nonzero(const char* op, const E& x) {
  constexpr int R = rank_of<E>;
  using D = device_of<E>;
  check_defined(op, x);
  const no_grad guard;
  const auto places = [&] {
    if constexpr (std::is_same_v<element_of<E>, bool>) return true_places(x);
    else return true_places(x != 0);
  }();
  const auto result = tensor<std::int64_t, 2, D>::uninitialized({{places.numel(), R}});
  const extents<R> shape = x.shape();
  tensor<std::int64_t, 1, D> rest = places;  // rows of the axes so far
  for (int d = R - 1; d >= 0; --d) {
    if (d == 0) {
      result.select(1, 0) = rest;
    } else {
      const tensor<std::int64_t, 1, D> outer = floor_divide(rest, shape[d]);
      result.select(1, d) = rest - outer * shape[d];
      rest = outer;
    }
  }
  return result;
}

}  // namespace detail

/// The coordinates of the elements that are not 0, in row-major order: int64, (k, rank of x). NaN is not 0. Their
/// columns, unbind(nonzero(x), 1), are indices for index_get. Every element type and rank. Runs at once; it waits for
/// their number, on a GPU for all work before. No derivative.
///
///     tensor places = nonzero(x > 0);
template <class X>
  requires(detail::has_axes<X, 0>)
tensor<std::int64_t, 2, device_of<X>> nonzero(const X& x) {
  return detail::coordinates_of_nonzero("nonzero", x);
}
/// nonzero under its other name.
///
///     tensor places = argwhere(x);
template <class X>
  requires(detail::has_axes<X, 0>)
tensor<std::int64_t, 2, device_of<X>> argwhere(const X& x) {
  return detail::coordinates_of_nonzero("argwhere", x);
}
SINTER_AXES_REJECTIONS(nonzero, 0)
SINTER_AXES_REJECTIONS(argwhere, 0)

}  // namespace sinter
