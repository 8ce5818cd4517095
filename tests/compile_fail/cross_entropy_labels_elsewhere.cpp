// tests/compile_fail/cross_entropy_labels_elsewhere.cpp: cross_entropy() against labels on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?numa<0>, (sinter::)?cpu>
// FIRST-LINE: copy_one_operand_with_dot_to
// LINES-CLANG: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, numa<0>> scores, tensor<std::int64_t, 1> labels) { cross_entropy(scores, labels); }
#else
void f(tensor<float, 2, numa<0>> scores, tensor<std::int64_t, 1, numa<0>> labels) { cross_entropy(scores, labels); }
#endif
