// sinter/ops/ternary.hpp: what functions of three operands, and of one operand and numbers, share.
#pragma once

#include "sinter/ops/op.hpp"

namespace sinter {

/// An expression of floating-point elements.
template <class E>
concept real_expression = expression<E> && floating_element<element_of<E>>;

}  // namespace sinter
