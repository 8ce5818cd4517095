// tests/compile_fail/let_of_number.cpp: a body of let() that is no expression.
// FIRST-LINE: the function given to let\(\) must return an expression
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 2> f(const tensor<float, 2>& x) {
  return let(x, [](auto) { return 1.f; });
}
#else
tensor<float, 2> f(const tensor<float, 2>& x) {
  return let(x, [](auto t) { return t + 1.f; });
}
#endif
