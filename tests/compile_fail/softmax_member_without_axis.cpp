// tests/compile_fail/softmax_member_without_axis.cpp: a member whose axis was forgotten.
// EXPECT: axis_that_is_not_given
// EXPECT: pass_the_axis_or_minus_1_for_the_last
// LINES-GCC: 16
// LINES-CLANG: 34
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x.softmax(); }
#else
auto f(const tensor<float, 2>& x) { return x.softmax(1); }
#endif
