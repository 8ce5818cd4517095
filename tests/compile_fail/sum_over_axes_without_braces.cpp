// tests/compile_fail/sum_over_axes_without_braces.cpp: two axes without braces.
// FIRST-LINE: third_argument_that_is_not_keepdim_but<int>
// FIRST-LINE: write_keepdim_or_list_the_axes_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return sum(x, 0, 1); }
#else
auto f(const tensor<float, 2>& x) { return sum(x, {0, 1}); }
#endif
