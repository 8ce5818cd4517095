// tests/compile_fail/variable_reshape_without_braces.cpp: reshape() of a variable with numbers that are not in braces.
// FIRST-LINE: extents_that_are_not_in_braces
// FIRST-LINE: write_them_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& x) { return x.reshape(2, 3); }
#else
auto f(const variable<float, 2>& x) { return x.reshape({2, 3}); }
#endif
