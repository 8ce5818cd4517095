// sinter/ops/where.hpp: one of two operands, chosen by a mask.
#pragma once

#include "sinter/ops/ternary.hpp"

namespace sinter {
namespace ops {

struct where_op {
  static constexpr const char* name = "where";
  static constexpr unsigned grad_uses[3] = {uses::nothing, uses::first, uses::first};
  template <class>
  static constexpr bool accepts = true;
  template <class, class T, class>
  using result = T;
  template <class M, class A, class B>
  SINTER_WORD static auto apply(M m, A a, B b) {
    return math::select(m, plain(a), plain(b));
  }
  template <int I, class G, class M, class A, class B, class Y>
  SINTER_WORD static auto grad(const G& g, const M& m, const A&, const B&, const Y&) {
    if constexpr (I == 1) return select(m, g, zero_of(g));
    else return select(m, zero_of(g), g);
  }
};

}  // namespace ops

template <class>
struct mask_with_elements_of_type;
struct compare_with_zero_or_cast_to_bool;

namespace detail {

/// The element type of where(mask, a, b): that of the tensors, or of the literals when both are.
template <class A, class B>
struct branch_element : literal_target<A, B> {};
template <literal A, literal B>
struct branch_element<A, B> {
  using type = std::conditional_t<std::is_same_v<bare<A>, bare<B>>, bare<A>, void>;
};
template <class A, class B>
using branch_type = typename branch_element<A, B>::type;

template <class M>
concept mask_expression = expression<M> && std::is_same_v<element_of<M>, bool>;

template <class M, class A, class B>
concept where_operands = expression<M> && operand<A> && operand<B>;

template <class A, class B>
concept branches_agree = elements_agree<A, B> && element<branch_type<A, B>> && literal_fits<A, branch_type<A, B>> &&
                         literal_fits<B, branch_type<A, B>>;

}  // namespace detail

/// a where mask is true, b elsewhere, elementwise and broadcast. a and b are tensors of one element type or literals;
/// two literals give elements of their type. The value of the branch that is not taken does not matter, not even NaN.
/// Derivative: g to the branch taken, 0 to the other, where an infinite derivative turns it into NaN: write
/// log(where(x > 0, x, 1)), not where(x > 0, log(x), 0).
///
///     tensor y = where(x > 0, x, 0);
template <detail::mask_expression M, class A, class B>
  requires(detail::where_operands<M, A, B> && detail::three_devices_agree<M, A, B> && detail::branches_agree<A, B>)
auto where(M&& mask, A&& a, B&& b) {
  using T = detail::branch_type<A, B>;
  return detail::make_map(ops::where_op{}, std::forward<M>(mask), detail::as_node<T>(std::forward<A>(a)),
                          detail::as_node<T>(std::forward<B>(b)));
}
template <expression M, class A, class B,
          class Problem =
              operands_on_different_devices<device_of<M>, detail::operand_device<A>, detail::operand_device<B>>,
          class Fix = copy_one_operand_with_dot_to>
  requires(detail::where_operands<M, A, B> && !detail::three_devices_agree<M, A, B>)
void where(const M&, const A&, const B&) = delete;
template <expression M, class A, class B, class Problem = mask_with_elements_of_type<element_of<M>>,
          class Fix = compare_with_zero_or_cast_to_bool>
  requires(detail::where_operands<M, A, B> && detail::three_devices_agree<M, A, B> && !detail::mask_expression<M>)
void where(const M&, const A&, const B&) = delete;
template <detail::mask_expression M, class A, class B,
          class Problem = mixed_element_types<detail::operand_element<A>, detail::operand_element<B>>,
          class Fix = convert_one_operand_with_cast>
  requires(detail::where_operands<M, A, B> && detail::three_devices_agree<M, A, B> && !detail::branches_agree<A, B>)
void where(const M&, const A&, const B&) = delete;

/// where(mask, a, b) under the name that derivatives use.
template <expression M, class A, class B>
  requires requires(M&& m, A&& a, B&& b) { where(std::forward<M>(m), std::forward<A>(a), std::forward<B>(b)); }
auto select(M&& mask, A&& a, B&& b) {
  return where(std::forward<M>(mask), std::forward<A>(a), std::forward<B>(b));
}

}  // namespace sinter
