// tests/compile_fail/tensor_from_tracked.cpp: a tensor from a tracked expression would lose the gradient.
// FIRST-LINE: expression_is_tracked_for_gradients
// FIRST-LINE: declare_a_variable_or_use_detach
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 1> w) { tensor<float, 1> y = w * 2; }
#else
void f(variable<float, 1> w) { variable<float, 1> y = w * 2; }
#endif
