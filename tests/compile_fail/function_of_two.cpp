// tests/compile_fail/function_of_two.cpp: a function of two operands across devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<1>, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto larger(tensor<float, 1, numa<1>> a, tensor<float, 1> b) { return maximum(a, b); }
#else
auto larger(tensor<float, 1> a, tensor<float, 1> b) { return maximum(a, b); }
#endif
