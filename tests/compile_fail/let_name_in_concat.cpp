// tests/compile_fail/let_name_in_concat.cpp: a name of let() in concat(), which copies values.
// LINES-GCC: 13
// EXPECT: value_that_let_names_in_a_kernel_of_its_own
// EXPECT: evaluate_it_before_let
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 1>& x) {
  return let(exp(x), [](auto t) { return concat({t, t}); });
}
#else
auto f(const tensor<float, 1>& x) {
  tensor t = exp(x);
  return concat({t, t});
}
#endif
