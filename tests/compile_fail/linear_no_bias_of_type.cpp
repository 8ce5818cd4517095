// tests/compile_fail/linear_no_bias_of_type.cpp: no_bias for a layer whose type has one.
// FIRST-LINE: linear
// EXPECT: the_type_of_this_layer_has_a_bias
// EXPECT: name_all_template_arguments
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(generator& gen) { nn::linear<double> layer(784, 10, gen, nn::no_bias); }
#else
void f(generator& gen) { nn::linear<double, cpu, nn::tracked, false> layer(784, 10, gen, nn::no_bias); }
#endif
