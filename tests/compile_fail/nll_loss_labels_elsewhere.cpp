// tests/compile_fail/nll_loss_labels_elsewhere.cpp: nll_loss() against labels on another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> scores, tensor<std::int64_t, 1, cuda<0>> labels) { nll_loss(scores, labels); }
#else
void f(tensor<float, 2> scores, tensor<std::int64_t, 1> labels) { nll_loss(scores, labels); }
#endif
