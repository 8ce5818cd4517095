// tests/compile_fail/axis_with_fraction.cpp: a floating-point number as the axis of a row op.
// FIRST-LINE: index_that_is_not_an_integer
// FIRST-LINE: use_an_integer_index
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 2> f(tensor<float, 2> a) { return softmax(a, 1.f); }
#else
tensor<float, 2> f(tensor<float, 2> a) { return softmax(a, 1); }
#endif
