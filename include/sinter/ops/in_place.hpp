// sinter/ops/in_place.hpp: +=, -=, *=, /= on tensors and views.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter::detail {

template <class Y>
concept writable = is_tensor<bare<Y>> && !std::is_const_v<std::remove_reference_t<Y>>;

template <class E>
constexpr bool tracked_test() {
  if constexpr (expression<E>) return is_tracked_v<E>;
  else return false;
}
template <class E>
concept tracked_operand = tracked_test<E>();

template <class Op, class Y, class E>
auto update(Op op, Y& y, E&& e) {
  using T = element_of<Y>;
  check_defined("in-place update", y);
  auto node = make_map(op, y, as_node<T>(std::forward<E>(e)));
  return assignment<Y, decltype(node)>(y, std::move(node));
}

}  // namespace sinter::detail

// `y += e` writes through y's storage, so every view sees it. e broadcasts to y. The update runs at the end of the
// statement, or in one pass with others inside fuse().
#define SINTER_IN_PLACE_OPERATOR(sign, op)                                                                     \
  template <class Y, class E>                                                                                  \
    requires(::sinter::detail::writable<Y> && ::sinter::detail::compatible<Y, E> && !::sinter::detail::tracked_operand<E>) \
  auto operator sign(Y&& y, E&& e) {                                                                           \
    return ::sinter::detail::update(op{}, y, std::forward<E>(e));                                              \
  }                                                                                                            \
  SINTER_BINARY_REJECTIONS(operator sign)

namespace sinter {

SINTER_IN_PLACE_OPERATOR(+=, ops::add_op)
SINTER_IN_PLACE_OPERATOR(-=, ops::subtract_op)
SINTER_IN_PLACE_OPERATOR(*=, ops::multiply_op)
SINTER_IN_PLACE_OPERATOR(/=, ops::divide_op)

}  // namespace sinter
