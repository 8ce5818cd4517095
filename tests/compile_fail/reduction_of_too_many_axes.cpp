// tests/compile_fail/reduction_of_too_many_axes.cpp: a reduction that names three axes of a matrix.
// FIRST-LINE: names more axes than its operand has
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 0> f(const tensor<float, 2>& x) { return sum(x, {0, 1, 2}); }
#else
tensor<float, 0> f(const tensor<float, 2>& x) { return sum(x, {0, 1}); }
#endif
