// tests/compile_fail/comparison_chain.cpp: a < b < c would compare a mask with c.
// EXPECT: less
// EXPECT: bool
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> a) { return 0 < a < 1; }
#else
auto f(tensor<float, 1> a) { return (0 < a) && (a < 1); }
#endif
