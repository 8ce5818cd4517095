// tests/compile_fail/linear_without_generator.cpp: a layer whose weights have nowhere to come from.
// FIRST-LINE: linear
// EXPECT: weights_without_a_generator
// EXPECT: pass_a_generator_as_third_argument
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(generator&) { nn::linear layer(784, 10); }
#else
void f(generator& gen) { nn::linear layer(784, 10, gen); }
#endif
