// tests/compile_fail/stack_ranks.cpp: stack() of tensors of two ranks.
// FIRST-LINE: operands_of_different_ranks<2, 1>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a, tensor<float, 1> b) { stack(0, a, b); }
#else
void f(tensor<float, 2> a, tensor<float, 2> b) { stack(0, a, b); }
#endif
