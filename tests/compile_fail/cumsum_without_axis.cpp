// tests/compile_fail/cumsum_without_axis.cpp: running sums along no axis.
// FIRST-LINE: axis_that_is_not_given
// FIRST-LINE: pass_the_axis_or_minus_1_for_the_last
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return cumsum(x); }
#else
auto f(const tensor<float, 2>& x) { return cumsum(x, -1); }
#endif
