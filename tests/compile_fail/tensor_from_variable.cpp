// tests/compile_fail/tensor_from_variable.cpp: a tensor from a variable would lose the gradient.
// FIRST-LINE: expression_is_tracked_for_gradients
// FIRST-LINE: declare_a_variable_or_use_detach
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1> f(variable<float, 1> w) { return w; }
#else
tensor<float, 1> f(variable<float, 1> w) { return w.detach(); }
#endif
