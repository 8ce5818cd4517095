// tests/compile_fail/let_name_in_reduction.cpp: a name of let() under a reduction, which is a kernel of its own.
// FIRST-LINE: a reduction or row-wise op in the body of let\(\) reads the name
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 2> shares(const tensor<float, 2>& x) {
  return let(exp(x), [](auto t) { return t / sum(t, 1, keepdim); });
}
#else
tensor<float, 2> shares(const tensor<float, 2>& x) {
  tensor t = exp(x);
  return t / sum(t, 1, keepdim);
}
#endif
