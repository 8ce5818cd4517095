// tests/compile_fail/too_many_operands.cpp: more operands in a statement than a pass takes.
// EXPECT: the statement has too many operands for one pass; split it in two
// LINES-GCC: 20
// LINES-CLANG: 30
// LINES-NVCC: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
constexpr int operands = 50;
#else
constexpr int operands = 30;
#endif

template <int N, class E>
auto add_again(const E& e, const tensor<float, 1>& x) {
  if constexpr (N == 1) return e;
  else return add_again<N - 1>(e + x, x);
}
tensor<float, 1> f(const tensor<float, 1>& x) { return add_again<operands>(x, x); }
