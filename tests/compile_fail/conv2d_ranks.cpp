// tests/compile_fail/conv2d_ranks.cpp: conv2d() of one picture without a batch.
// FIRST-LINE: operands_of_ranks<3, 4>
// FIRST-LINE: use_x_and_weights_of_rank<4>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 3> x, tensor<float, 4> w) { return conv2d(x, w, {.padding = 1}); }
#else
auto f(tensor<float, 3> x, tensor<float, 4> w) { return conv2d(x.unsqueeze(0), w, {.padding = 1}); }
#endif
