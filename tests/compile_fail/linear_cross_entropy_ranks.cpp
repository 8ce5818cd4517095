// tests/compile_fail/linear_cross_entropy_ranks.cpp: linear_cross_entropy() of targets that have another rank.
// FIRST-LINE: inputs_weights_and_targets_of_ranks<3, 2, 1, 1>
// FIRST-LINE: use_weights_of_rank_2_a_bias_of_rank_1_and_targets_of_the_shape_of_the_inputs_without_the_last_axis
// LINES-CLANG: 32
#include <sinter/sequences.hpp>

using namespace sinter;

void f(variable<float, 3> x, variable<float, 2> w, variable<float, 1> b, tensor<int, 1> targets) {
#ifdef SINTER_MUST_FAIL
  linear_cross_entropy(x, w, b, targets, {.recompute = true}, reduction::sum);
#else
  linear_cross_entropy(x, w, b, targets.unsqueeze(1), {.recompute = true}, reduction::sum);
#endif
}
