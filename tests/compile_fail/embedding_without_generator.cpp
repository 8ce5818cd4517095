// tests/compile_fail/embedding_without_generator.cpp: a table whose rows have nowhere to come from.
// FIRST-LINE: embedding
// EXPECT: weights_without_a_generator
// EXPECT: pass_a_generator_as_third_argument
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(generator&) { nn::embedding words(10000, 256); }
#else
void f(generator& gen) { nn::embedding words(10000, 256, gen); }
#endif
