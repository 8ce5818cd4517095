// sinter/core/swap.hpp: what std::swap says of tensors or variables of different types.
#pragma once

#include <type_traits>

#include "sinter/core/concepts.hpp"

namespace sinter::detail {

/// Why A and B, which differ, do not change places: one of them does not convert to the other.
template <class A, class B>
constexpr auto find_swap_mistake() {
  if constexpr (std::is_same_v<A, B> || !(is_tensor<B> || is_variable<B>)) return not_operands{};
  else if constexpr (!converts<A, element_of<B>, rank_of<B>, device_of<B>, B::order>)
    return conversion_mistake<A, element_of<B>, rank_of<B>, device_of<B>, B::order>{};
  else return conversion_mistake<B, element_of<A>, rank_of<A>, device_of<A>, A::order>{};
}
template <class A, class B>
using swap_mistake = decltype(find_swap_mistake<A, B>());

}  // namespace sinter::detail

// They stand in std because a call of std::swap looks nowhere else; if no swap fits, g++ lists all of the standard
// library. These fit tensors and variables of different types, which no other swap takes. Clang lists the others
// behind a deleted function, too, but not behind an unavailable one; a concept finds both kinds false.
#if defined(__clang__)
#define SINTER_NO_SWAP __attribute__((unavailable("its last two template arguments are the problem and the fix")))
#define SINTER_NO_BODY
#else
#define SINTER_NO_SWAP
#define SINTER_NO_BODY = delete
#endif
namespace std {

template <class T, auto Shape, class D, class B,
          class Problem = typename sinter::detail::swap_mistake<sinter::tensor<T, Shape, D>, B>::problem,
          class Fix = typename sinter::detail::swap_mistake<sinter::tensor<T, Shape, D>, B>::fix>
SINTER_NO_SWAP void swap(sinter::tensor<T, Shape, D>&, B&) SINTER_NO_BODY;
template <class T, auto Shape, class D, int Order, class B,
          class Problem = typename sinter::detail::swap_mistake<sinter::variable<T, Shape, D, Order>, B>::problem,
          class Fix = typename sinter::detail::swap_mistake<sinter::variable<T, Shape, D, Order>, B>::fix>
SINTER_NO_SWAP void swap(sinter::variable<T, Shape, D, Order>&, B&) SINTER_NO_BODY;

}  // namespace std
#undef SINTER_NO_SWAP
#undef SINTER_NO_BODY
