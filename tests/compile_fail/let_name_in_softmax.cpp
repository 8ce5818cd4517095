// tests/compile_fail/let_name_in_softmax.cpp: a name of let() as operand of an op with a kernel of its own.
// EXPECT: value_that_let_names_in_a_kernel_of_its_own
// EXPECT: evaluate_it_before_let
// LINES-GCC: 24
// LINES-CLANG: 50
// LINES-NVCC: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto mix(const tensor<float, 2>& x) {
  return let(exp(x), [](auto t) { return t + softmax(t, 1); });
}
#else
auto mix(const tensor<float, 2>& x) {
  tensor t = exp(x);
  return t + softmax(t, 1);
}
#endif
