// tests/compile_fail/loss_reduction_as_text.cpp: the reduction of a loss as text, as PyTorch writes it.
// FIRST-LINE-GCC: reduction_that_is_text.*write_reduction_mean_reduction_sum_or_reduction_none
// EXPECT: reduction_that_is_text
// EXPECT: write_reduction_mean_reduction_sum_or_reduction_none
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> y, tensor<float, 1> target) { bce_with_logits(y, target, "sum"); }
#else
void f(variable<float, 1> y, tensor<float, 1> target) { bce_with_logits(y, target, reduction::sum); }
#endif
