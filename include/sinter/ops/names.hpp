// sinter/ops/names.hpp: further names, PyTorch's, of operators and of ops.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/all.hpp"
#include "sinter/ops/clamp.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/equal.hpp"
#include "sinter/ops/greater.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/less.hpp"
#include "sinter/ops/less_equal.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ops/min.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/remainder.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

/// a + b.
///
///     tensor y = add(x, 1);
SINTER_BINARY_FUNCTION(add, ops::add_op)
/// a - b.
///
///     tensor y = sub(x, 1);
SINTER_BINARY_FUNCTION(sub, ops::subtract_op)
/// a * b.
///
///     tensor y = mul(x, 2);
SINTER_BINARY_FUNCTION(mul, ops::multiply_op)
/// a / b.
///
///     tensor y = div(x, 2);
SINTER_BINARY_FUNCTION(div, ops::divide_op)
/// -x.
///
///     tensor y = neg(x);
SINTER_UNARY_FUNCTION(neg, ops::negate_op)
/// remainder(a, b), which has the sign of b.
///
///     tensor y = x % 2;
SINTER_BINARY_FUNCTION(operator%, ops::remainder_op)
/// clamp(x, low, high).
///
///     tensor y = clip(x, 0, 1);
SINTER_TERNARY_FUNCTION(clip, ops::clamp_op)
/// a == b, a mask.
///
///     tensor mask = eq(x, 0);
SINTER_BINARY_FUNCTION(eq, ops::equal_op)
/// a != b, a mask.
///
///     tensor mask = ne(x, 0);
SINTER_BINARY_FUNCTION(ne, ops::not_equal_op)
/// a < b, a mask.
///
///     tensor mask = lt(x, 0);
SINTER_BINARY_FUNCTION(lt, ops::less_op)
/// a <= b, a mask.
///
///     tensor mask = le(x, 0);
SINTER_BINARY_FUNCTION(le, ops::less_equal_op)
/// a > b, a mask.
///
///     tensor mask = gt(x, 0);
SINTER_BINARY_FUNCTION(gt, ops::greater_op)
/// a >= b, a mask.
///
///     tensor mask = ge(x, 0);
SINTER_BINARY_FUNCTION(ge, ops::greater_equal_op)
/// max(x, axes), values alone.
///
///     tensor highest = amax(x, 1);
SINTER_REDUCTION(amax, ops::max_op)
/// min(x, axes), values alone.
///
///     tensor lowest = amin(x, 1);
SINTER_REDUCTION(amin, ops::min_op)

struct clamp_of_one_limit;
struct use_clamp_min_or_clamp_max;
template <expression A, class B, class Problem = clamp_of_one_limit, class Fix = use_clamp_min_or_clamp_max>
void clamp(A&&, B&&) = delete;

}  // namespace sinter
