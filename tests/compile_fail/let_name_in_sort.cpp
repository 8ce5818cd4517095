// tests/compile_fail/let_name_in_sort.cpp: a name of let() in sort(), which runs as a kernel of its own.
// LINES-CLANG: 30
// EXPECT: value_that_let_names_in_a_kernel_of_its_own
// EXPECT: evaluate_it_before_let
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x) {
  return let(exp(x), [](auto t) { return t + sort(t, 0).values; });
}
#else
auto f(const tensor<float, 1>& x) {
  tensor t = exp(x);
  return t + sort(t, 0).values;
}
#endif
