// tests/compile_fail/operator_two_numa_nodes.cpp: an operator with operands on two NUMA nodes.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto ratio(tensor<float, 2, numa<0>> a, tensor<float, 2, numa<1>> b) { return a / b; }
#else
auto ratio(tensor<float, 2, numa<0>> a, tensor<float, 2, numa<0>> b) { return a / b; }
#endif
