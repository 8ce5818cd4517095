// tests/compile_fail/linear_cross_entropy_elsewhere.cpp: linear_cross_entropy() of targets on another device.
// FIRST-LINE: operands_on_different_devices<
// FIRST-LINE: copy_one_operand_with_dot_to
// LINES-CLANG: 32
#include <sinter/sequences.hpp>

using namespace sinter;

using matrix = variable<float, 2, numa<0>>;
using bias = variable<float, 1, numa<0>>;

#ifdef SINTER_MUST_FAIL
void f(matrix x, matrix w, bias b, tensor<int, 1> targets) { linear_cross_entropy(x, w, b, targets); }
#else
void f(matrix x, matrix w, bias b, tensor<int, 1, numa<0>> targets) { linear_cross_entropy(x, w, b, targets); }
#endif
