// tests/compile_fail/operator_reduction_elsewhere.cpp: the result of a reduction lives where its operand does.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto centred(tensor<float, 2> x, tensor<float, 2, cuda<0>> y) { return x - mean(y); }
#else
auto centred(tensor<float, 2> x, tensor<float, 2> y) { return x - mean(y); }
#endif
