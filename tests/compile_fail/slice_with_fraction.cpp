// tests/compile_fail/slice_with_fraction.cpp: a floating-point number as the end of a slice.
// FIRST-LINE: index_that_is_not_an_integer
// FIRST-LINE: use_an_integer_index
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(variable<float, 2> a, float n) { return a.slice(1, 0, n / 2); }
#else
auto f(variable<float, 2> a, int n) { return a.slice(1, 0, n / 2); }
#endif
