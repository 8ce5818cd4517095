// tests/compile_fail/conv2d_without_generator.cpp: a convolution layer whose weights have nowhere to come from.
// FIRST-LINE: conv2d
// EXPECT: weights_without_a_generator
// EXPECT: pass_a_generator_behind_the_kernel
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(generator&) { nn::conv2d layer(3, 16, 3); }
#else
void f(generator& gen) { nn::conv2d layer(3, 16, 3, gen); }
#endif
