// tests/compile_fail/reshape_without_braces.cpp: reshape() with numbers that are not in braces.
// FIRST-LINE: extents_that_are_not_in_braces
// FIRST-LINE: write_them_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x.reshape(2, 3); }
#else
auto f(const tensor<float, 2>& x) { return x.reshape({2, 3}); }
#endif
