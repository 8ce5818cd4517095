// tests/compile_fail/optimizer_of_order_2.cpp: an optimizer steps variables of order 1.
// FIRST-LINE: variable_of_order_2_given_to_an_optimizer
// FIRST-LINE: declare_it_with_order_1
// LINES-GCC: 18
// LINES-NVCC: 18
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1, cpu, 2> w) { optim::adam optimizer(w, {.lr = 0.1}); }
#else
void f(variable<float, 1, cpu, 1> w) { optim::adam optimizer(w, {.lr = 0.1}); }
#endif
