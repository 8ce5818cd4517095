// tests/compile_fail/checkpointed_of_function.cpp: a function that is to be a checkpointed module.
// FIRST-LINE: checkpointed_module_that_is_no_module<
// FIRST-LINE: give_a_module_or_call_sinter_checkpoint_with_a_function
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return nn::checkpointed<numa<0>>([](const variable<float, 1>& a) { return exp(a); }); }
#else
auto f() { return nn::checkpointed<numa<0>>(nn::tanh()); }
#endif
