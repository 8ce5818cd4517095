// tests/compile_fail/let_name_in_gather.cpp: a name of let() in gather(), which runs as a kernel of its own.
// LINES-GCC: 13
// LINES-CLANG: 45
// EXPECT: value_that_let_names_in_a_kernel_of_its_own
// EXPECT: evaluate_it_before_let
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x, const tensor<int, 1>& i) {
  return let(exp(x), [&](auto t) { return t + gather(t, 0, i); });
}
#else
auto f(const tensor<float, 1>& x, const tensor<int, 1>& i) {
  tensor t = exp(x);
  return t + gather(t, 0, i);
}
#endif
