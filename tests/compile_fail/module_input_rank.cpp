// tests/compile_fail/module_input_rank.cpp: a chain whose convolution gets matrices.
// FIRST-LINE: operands_of_ranks<2, 4, 1>
// FIRST-LINE: use_x_and_weights_of_rank<4>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using chain = nn::sequential<nn::relu, nn::linear<>, nn::conv2d<>>;
#else
using chain = nn::sequential<nn::relu, nn::linear<>, nn::sigmoid>;
#endif
void f(const chain& model, const tensor<float, 2>& x) { model(x); }
