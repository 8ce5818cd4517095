// tests/compile_fail/conv2d_bias_of_layer.cpp: no_bias for a layer whose type has one.
// FIRST-LINE: conv2d
// EXPECT: the_type_of_this_layer_has_a_bias
// EXPECT: name_all_template_arguments_as_in_conv2d_double_cpu_tracked_false
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(generator& gen) { nn::conv2d<double> layer(3, 16, 3, gen, {}, nn::no_bias); }
#else
void f(generator& gen) { nn::conv2d<double, cpu, nn::tracked, false> layer(3, 16, 3, gen, {}, nn::no_bias); }
#endif
