// tests/compile_fail/optimizer_of_number.cpp: a learning rate without its name.
// FIRST-LINE: number_in_place_of_options
// FIRST-LINE: name_the_setting_in_braces_such_as_dot_lr
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(nn::linear<>& model) { optim::adam optimizer(model, 0.01); }
#else
void f(nn::linear<>& model) { optim::adam optimizer(model, {.lr = 0.01}); }
#endif
