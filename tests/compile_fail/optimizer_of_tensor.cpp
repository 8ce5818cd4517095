// tests/compile_fail/optimizer_of_tensor.cpp: a plain tensor has no gradient.
// EXPECT: a plain tensor has no gradient to step by
// LINES-GCC: 12
// LINES-NVCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#else
void f(variable<float, 1> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#endif
