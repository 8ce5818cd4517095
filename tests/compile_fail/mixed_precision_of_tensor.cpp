// tests/compile_fail/mixed_precision_of_tensor.cpp: a tensor has no gradient to step by.
// FIRST-LINE: tensor_without_gradient_given_to_an_optimizer
// FIRST-LINE: make_it_a_variable
// LINES-GCC: 20
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using parameter = tensor<half, 2>;
#else
using parameter = variable<half, 2>;
#endif

void f(const parameter& w) { optim::mixed_precision<optim::adam> policy(w); }
