// tests/compile_fail/let_name_in_matmul.cpp: a name of let() as factor of a matrix product, which is a kernel of its own.
// EXPECT: product_of_a_value_that_let_names
// EXPECT: evaluate_it_before_let
// LINES-GCC: 24
// LINES-CLANG: 50
// LINES-NVCC: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto mix(const tensor<float, 2>& x, const tensor<float, 2>& w) {
  return let(exp(x), [&](auto t) { return t + matmul(t, w); });
}
#else
auto mix(const tensor<float, 2>& x, const tensor<float, 2>& w) {
  tensor t = exp(x);
  return t + matmul(t, w);
}
#endif
