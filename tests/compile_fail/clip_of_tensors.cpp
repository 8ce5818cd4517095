// tests/compile_fail/clip_of_tensors.cpp: a range of plain tensors has no gradients to clip.
// FIRST-LINE: tensor_without_gradient_given_to_an_optimizer
// FIRST-LINE: make_it_a_variable
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(std::vector<tensor<float, 1>> w) { optim::clip_grad_value(w, 1); }
#else
void f(std::vector<variable<float, 1>> w) { optim::clip_grad_value(w, 1); }
#endif
