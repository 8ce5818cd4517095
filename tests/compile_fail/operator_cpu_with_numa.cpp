// tests/compile_fail/operator_cpu_with_numa.cpp: a NUMA node is another device than the CPU as a whole.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto difference(tensor<float, 1, numa<0>> a, tensor<float, 1> b) { return a - b; }
#else
auto difference(tensor<float, 1> a, tensor<float, 1> b) { return a - b; }
#endif
