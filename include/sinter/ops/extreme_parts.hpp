// sinter/ops/extreme_parts.hpp: the two parts of a maximum or minimum: auto [values, indices] = max(x, 1).
#pragma once

#include <type_traits>
#include <utility>

#include "sinter/ops/argmax.hpp"
#include "sinter/ops/argmin.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"

namespace sinter {
namespace detail {

template <class Extreme>
struct place_of_extreme;  // is there for max and min
template <>
struct place_of_extreme<ops::max_op> {
  using type = ops::argmax_op;
};
template <>
struct place_of_extreme<ops::min_op> {
  using type = ops::argmin_op;
};

}  // namespace detail

/// What `auto [values, indices] = max(x, 1);` names: part 0 is the expression itself, part 1 is argmax of its operand.
template <std::size_t Part, class Extreme, int N, int R, class X,
          class Place = typename detail::place_of_extreme<Extreme>::type>
auto get(const kernel_expr<ops::reduce_op<Extreme, N, R>, X>& e) {
  if constexpr (Part == 0) return e;
  else return detail::arg_extreme_of<Place, R>(e.operands.template get<0>(), e.op.axes, {});
}

}  // namespace sinter

template <class Extreme, int N, int R, class X>
  requires requires { typename sinter::detail::place_of_extreme<Extreme>::type; }
struct std::tuple_size<sinter::kernel_expr<sinter::ops::reduce_op<Extreme, N, R>, X>>
    : std::integral_constant<std::size_t, 2> {};
template <std::size_t Part, class Extreme, int N, int R, class X>
struct std::tuple_element<Part, sinter::kernel_expr<sinter::ops::reduce_op<Extreme, N, R>, X>> {
  using type =
      decltype(get<Part>(std::declval<const sinter::kernel_expr<sinter::ops::reduce_op<Extreme, N, R>, X>&>()));
};
