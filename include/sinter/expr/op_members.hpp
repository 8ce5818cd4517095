// sinter/expr/op_members.hpp: which members an op has: what the concepts of ops are made of.
#pragma once

#include <concepts>
#include <type_traits>

namespace sinter::detail {

// True if the class C has a member of that name; a function template counts and is not instantiated. In a class that
// inherits the name twice it is ambiguous, so its address does not exist.
#define SINTER_HAS_MEMBER(concept_name, member)                                                  \
  struct also_##member {                                                                         \
    int member;                                                                                  \
  };                                                                                             \
  template <class C>                                                                             \
  struct with_##member : C, also_##member {};                                                    \
  template <class C>                                                                             \
  concept concept_name = std::is_class_v<C> && requires { sizeof(C); } && !std::is_final_v<C> && \
                         !requires { &with_##member<C>::member; };

SINTER_HAS_MEMBER(has_apply, apply)
SINTER_HAS_MEMBER(has_grad, grad)
SINTER_HAS_MEMBER(has_shape, shape)
SINTER_HAS_MEMBER(has_mistake, mistake)
SINTER_HAS_MEMBER(has_forward, forward)
SINTER_HAS_MEMBER(has_reverse, reverse)
#undef SINTER_HAS_MEMBER

/// A complete class that derives from Base. False, not an error, for an incomplete one.
template <class Op, class Base>
concept is_derived = std::is_class_v<Op> && requires { sizeof(Op); } && std::derived_from<Op, Base>;

template <class Op>
concept has_name = requires {
  { Op::name } -> std::convertible_to<const char*>;
};
template <class Op>
concept has_grad_uses = requires {
  { Op::grad_uses[0] } -> std::convertible_to<unsigned>;
};

}  // namespace sinter::detail
