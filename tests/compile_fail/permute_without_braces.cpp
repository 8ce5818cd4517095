// tests/compile_fail/permute_without_braces.cpp: permute() with numbers that are not in braces.
// FIRST-LINE: extents_that_are_not_in_braces
// FIRST-LINE: write_them_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x.permute(1, 0); }
#else
auto f(const tensor<float, 2>& x) { return x.permute({1, 0}); }
#endif
