// tests/compile_fail/softmax_without_axis.cpp: a softmax along no axis.
// FIRST-LINE: axis_that_is_not_given
// FIRST-LINE: pass_the_axis_or_minus_1_for_the_last
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return softmax(x); }
#else
auto f(const tensor<float, 2>& x) { return softmax(x, -1); }
#endif
