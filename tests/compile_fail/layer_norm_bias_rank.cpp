// tests/compile_fail/layer_norm_bias_rank.cpp: layer_norm() of two axes with a bias for one.
// FIRST-LINE: operands_of_ranks<3, 2, 1>
// FIRST-LINE: use_a_weight_and_a_bias_of_one_rank_from_1_to_that_of_x
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
constexpr int axes = 1;
#else
constexpr int axes = 2;
#endif
auto normal(const tensor<float, 3>& x, const tensor<float, 2>& gain, const tensor<float, axes>& bias) {
  return layer_norm(x, gain, bias);
}
