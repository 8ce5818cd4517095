// tests/compile_fail/sum_with_true.cpp: true in place of keepdim.
// FIRST-LINE: third_argument_that_is_not_keepdim_but<bool>
// FIRST-LINE: write_keepdim_or_list_the_axes_in_braces
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return sum(x, 1, true); }
#else
auto f(const tensor<float, 2>& x) { return sum(x, 1, keepdim); }
#endif
