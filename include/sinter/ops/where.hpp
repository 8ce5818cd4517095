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
    return math::select(m, without_mask(a), without_mask(b));
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

template <class M, class A, class B>
constexpr auto find_where_mistake() {
  if constexpr (!expression<M> || !operand<A> || !operand<B>) return no_operands<M, A, B>{};
  else if constexpr (!devices_agree<M, A, B>)
    return mistake<operands_on_different_devices<device_of<M>, operand_device<A>, operand_device<B>>,
                   copy_one_operand_with_dot_to>{};
  else if constexpr (!std::is_same_v<element_of<M>, bool>)
    return mistake<mask_with_elements_of_type<element_of<M>>, compare_with_zero_or_cast_to_bool>{};
  else if constexpr (!elements_agree<A, B> || !element<branch_type<A, B>>)
    return mistake<mixed_element_types<operand_element<A>, operand_element<B>>, convert_one_operand_with_cast>{};
  else if constexpr (!literal_fits<A, branch_type<A, B>> || !literal_fits<B, branch_type<A, B>>)
    return mistake<floating_literal_with_elements_of_type<branch_type<A, B>>,
                   write_an_integer_literal_or_cast_the_tensor>{};
  else return fitting<branch_type<A, B>>{};
}
template <class M, class A, class B>
using where_mistake = decltype(find_where_mistake<bare<M>, bare<A>, bare<B>>());
template <class M, class A, class B>
concept can_choose = is_fitting<where_mistake<M, A, B>>;

}  // namespace detail

/// a where mask is true, b elsewhere, elementwise and broadcast. a and b are tensors of one element type or literals;
/// two literals give elements of their type. The value of the branch that is not taken does not matter, not even NaN.
/// Derivative: g to the branch taken, 0 to the other, where an infinite derivative turns it into NaN: write
/// log(where(x > 0, x, 1)), not where(x > 0, log(x), 0).
///
///     tensor y = where(x > 0, x, 0);
template <class M, class A, class B>
  requires detail::can_choose<M, A, B>
auto where(M&& mask, A&& a, B&& b) {
  using T = detail::branch_type<A, B>;
  return detail::make_map(ops::where_op{}, std::forward<M>(mask), detail::as_expr<T>(std::forward<A>(a)),
                          detail::as_expr<T>(std::forward<B>(b)));
}
template <class M, class A, class B, class Problem = typename detail::where_mistake<M, A, B>::problem,
          class Fix = typename detail::where_mistake<M, A, B>::fix>
void where(M&&, A&&, B&&) = delete;

/// where(mask, a, b) under the name that derivatives use.
template <class M, class A, class B>
  requires detail::can_choose<M, A, B>
auto select(M&& mask, A&& a, B&& b) {
  return where(std::forward<M>(mask), std::forward<A>(a), std::forward<B>(b));
}

}  // namespace sinter
