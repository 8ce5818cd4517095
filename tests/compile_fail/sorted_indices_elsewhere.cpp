// tests/compile_fail/sorted_indices_elsewhere.cpp: picking elements by indices that were sorted on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2> x, values_and_indices<tensor<float, 2, cuda<0>>> order) { return gather(x, 1, order.indices); }
#else
auto f(tensor<float, 2> x, values_and_indices<tensor<float, 2>> order) { return gather(x, 1, order.indices); }
#endif
