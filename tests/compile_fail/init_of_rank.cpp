// tests/compile_fail/init_of_rank.cpp: a bias has no inputs and outputs of a unit.
// FIRST-LINE: initial_values_that_parameters_of_this_rank_do_not_have<1>
// FIRST-LINE: pass_a_parameter_of_rank<2, 8>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(nn::linear<>& fc, generator& gen) { nn::init::kaiming_uniform_(fc.bias, gen, {.a = 0.1}); }
#else
void f(nn::linear<>& fc, generator& gen) { nn::init::kaiming_uniform_(fc.weight, gen, {.a = 0.1}); }
#endif
