// tests/compile_fail/max_with_number.cpp: max of a tensor and a number, which is maximum(); max reduces along an axis.
// FIRST-LINE-GCC: axis_that_is_not_an_integer.*maximum_minimum_or_clamp
// EXPECT: axis_that_is_not_an_integer
// LINES-GCC: 14
// LINES-CLANG: 34
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x) { return max(x, 0.f); }
#else
auto f(tensor<float, 1> x) { return max(x, 0); }
#endif
