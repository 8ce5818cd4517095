// tests/compile_fail/embedding_bag_offsets_elsewhere.cpp: embedding_bag() with offsets on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?cpu, (sinter::)?numa<0>, (sinter::)?numa<0> ?>
// FIRST-LINE: copy_one_operand_with_dot_to
// LINES-CLANG: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 1, numa<0>> ids, tensor<int, 1> begins, tensor<float, 2, numa<0>> t) { embedding_bag(ids, begins, t); }
#else
void f(tensor<int, 1, numa<0>> ids, tensor<int, 1, numa<0>> begins, tensor<float, 2, numa<0>> t) { embedding_bag(ids, begins, t); }
#endif
