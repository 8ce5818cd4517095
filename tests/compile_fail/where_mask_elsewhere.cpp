// tests/compile_fail/where_mask_elsewhere.cpp: where() with the mask on another device than both branches.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<1>, (sinter::)?cpu, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto pick(tensor<bool, 1, cuda<1>> m, tensor<float, 1> a, tensor<float, 1> b) { return where(m, a, b); }
#else
auto pick(tensor<bool, 1> m, tensor<float, 1> a, tensor<float, 1> b) { return where(m, a, b); }
#endif
