// tests/compile_fail/operator_cpu_with_cuda.cpp: an operator with one operand on the CPU and one on a GPU.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto add(tensor<float, 2> a, tensor<float, 2, cuda<0>> b) { return a + b; }
#else
auto add(tensor<float, 2> a, tensor<float, 2, cpu> b) { return a + b; }
#endif
