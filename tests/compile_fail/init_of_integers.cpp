// tests/compile_fail/init_of_integers.cpp: initial values of what is no parameter.
// FIRST-LINE: initial_values_for_what_is_no_parameter
// FIRST-LINE: pass_a_parameter_of_a_module_a_variable_or_a_tensor_of_floating_point
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 2>& ids, generator& gen) { nn::init::uniform_(ids, gen); }
#else
void f(tensor<float, 2>& values, generator& gen) { nn::init::uniform_(values, gen); }
#endif
