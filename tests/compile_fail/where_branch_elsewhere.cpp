// tests/compile_fail/where_branch_elsewhere.cpp: where() with one branch elsewhere, the other a number.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cuda<0>, (sinter::)?any_device, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto pick(tensor<float, 1, cuda<0>> x, tensor<float, 1> other) { return where(x > 0, 0, other); }
#else
auto pick(tensor<float, 1, cuda<0>> x, tensor<float, 1, cuda<0>> other) { return where(x > 0, 0, other); }
#endif
