// tests/compile_fail/optimizer_of_order_2.cpp: an optimizer steps variables of order 1.
// EXPECT: optimizers step variables of order 1
// LINES-GCC: 12
// LINES-NVCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1, cpu, 2> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#else
void f(variable<float, 1> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#endif
