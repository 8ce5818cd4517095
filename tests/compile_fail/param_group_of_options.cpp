// tests/compile_fail/param_group_of_options.cpp: settings of a group in braces, which would reset those left out.
// FIRST-LINE: settings_of_a_group_that_would_reset_those_it_does_not_name
// FIRST-LINE: give_a_function_that_changes_those_of_the_optimizer_such_as_auto_ref_o
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(optim::sgd& optimizer, nn::linear<>& head) { optimizer.add_param_group(head, {.lr = 0.01}); }
#else
void f(optim::sgd& optimizer, nn::linear<>& head) {
  optimizer.add_param_group(head, [](auto& o) { o.lr = 0.01; });
}
#endif
