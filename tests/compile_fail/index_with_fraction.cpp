// tests/compile_fail/index_with_fraction.cpp: a floating-point number as index.
// FIRST-LINE: index_that_is_not_an_integer
// FIRST-LINE: use_an_integer_index
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<int, 2> a) { return a[1.9]; }
#else
auto f(tensor<int, 2> a) { return a[1]; }
#endif
