// sinter/ops/aliases.hpp: further names that PyTorch and NumPy have for functions which are there.
#pragma once

#include "sinter/ops/abs.hpp"
#include "sinter/ops/acos.hpp"
#include "sinter/ops/acosh.hpp"
#include "sinter/ops/asin.hpp"
#include "sinter/ops/asinh.hpp"
#include "sinter/ops/atan.hpp"
#include "sinter/ops/atan2.hpp"
#include "sinter/ops/atanh.hpp"
#include "sinter/ops/dot.hpp"
#include "sinter/ops/names.hpp"
#include "sinter/ops/products.hpp"
#include "sinter/ops/rearrange.hpp"
#include "sinter/ops/sort.hpp"
#include "sinter/ops/split.hpp"
#include "sinter/ops/stacks.hpp"
#include "sinter/ops/tensordot.hpp"
#include "sinter/ops/trunc.hpp"

namespace sinter {

#define SINTER_ALIAS(name, of)                                           \
  template <class... A>                                                  \
  auto name(A&&... a) -> decltype(::sinter::of(std::forward<A>(a)...)) { \
    return ::sinter::of(std::forward<A>(a)...);                          \
  }
SINTER_ALIAS(absolute, abs)
SINTER_ALIAS(arccos, acos)
SINTER_ALIAS(arccosh, acosh)
SINTER_ALIAS(arcsin, asin)
SINTER_ALIAS(arcsinh, asinh)
SINTER_ALIAS(arctan, atan)
SINTER_ALIAS(arctan2, atan2)
SINTER_ALIAS(arctanh, atanh)
SINTER_ALIAS(multiply, mul)
SINTER_ALIAS(divide, div)
SINTER_ALIAS(true_divide, div)
SINTER_ALIAS(subtract, sub)
SINTER_ALIAS(negative, neg)
SINTER_ALIAS(fix, trunc)
SINTER_ALIAS(moveaxis, movedim)
SINTER_ALIAS(chain_matmul, multi_dot)
SINTER_ALIAS(vdot, dot)
SINTER_ALIAS(split_with_sizes, split)
#undef SINTER_ALIAS

// Functions of what are members.
#define SINTER_MEMBER_AS_FUNCTION(name, ...) \
  template <expression X, class... A>        \
  auto name(const X& x, A... a) {            \
    return __VA_ARGS__;                      \
  }
/// x.clone(): a tensor of its own with the same elements.
///
///     tensor y = clone(x);
SINTER_MEMBER_AS_FUNCTION(clone, x.clone(a...))
/// x.detach(): the value, without what has made it.
///
///     tensor y = detach(w);
SINTER_MEMBER_AS_FUNCTION(detach, x.detach(a...))
/// The number of elements.
///
///     index_t n = numel(x);
SINTER_MEMBER_AS_FUNCTION(numel, x.shape().numel(a...))
/// x.ravel(): all elements in a row.
///
///     tensor y = ravel(x);
SINTER_MEMBER_AS_FUNCTION(ravel, x.ravel(a...))
/// x.transpose(a, b): two axes exchanged.
///
///     tensor y = swapdims(x, 0, 1);
SINTER_MEMBER_AS_FUNCTION(swapdims, x.transpose(a...))
/// x.mT(): the last two axes exchanged.
///
///     tensor y = adjoint(x);
SINTER_MEMBER_AS_FUNCTION(adjoint, x.mT(a...))
/// sort(x, 0): each column in ascending order.
///
///     auto sorted = msort(x);
SINTER_MEMBER_AS_FUNCTION(msort, sort(x, 0, a...))
#undef SINTER_MEMBER_AS_FUNCTION

/// Sums of products over the last axes: of two vectors their dot product, of matrices a b^T.
///
///     tensor y = inner(a, b);
template <expression A, expression B>
  requires(rank_of<B> == 1 || rank_of<B> == 2)
auto inner(const A& a, const B& b) {
  if constexpr (rank_of<A> == 1 && rank_of<B> == 1) return dot(a, b);
  else if constexpr (rank_of<B> == 1) return matmul(a, b);
  else return linear(a, b);
}

}  // namespace sinter
