// tests/compile_fail/let_name_in_pad.cpp: a name of let() in an op with a kernel of its own.
// EXPECT: value_that_let_names_in_a_kernel_of_its_own
// EXPECT: evaluate_it_before_let
// LINES-GCC: 24
// LINES-CLANG: 50
// LINES-NVCC: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 2> f(const tensor<float, 2>& x) {
  return let(x * 2.f, [](auto v) { return v + pad(v, {1, -1}); });
}
#else
tensor<float, 2> f(const tensor<float, 2>& x) {
  return let(x * 2.f, [x](auto v) { return v + pad(x, {1, -1}); });
}
#endif
