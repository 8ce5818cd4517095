// tests/compile_fail/optimizer_of_tensor.cpp: a plain tensor has no gradient.
// FIRST-LINE: tensor_without_gradient_given_to_an_optimizer
// FIRST-LINE: make_it_a_variable
// LINES-GCC: 18
// LINES-NVCC: 18
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#else
void f(variable<float, 1> w) { optim::sgd optimizer(w, {.lr = 0.1}); }
#endif
