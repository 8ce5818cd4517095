// tests/compile_fail/var_with_false.cpp: PyTorch's unbiased=False by its place.
// FIRST-LINE: third_argument_that_is_not_keepdim_but<bool>
// FIRST-LINE: write_dot_correction_0_in_braces_or_keepdim
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x.var(1, false); }
#else
auto f(const tensor<float, 2>& x) { return x.var(1, {.correction = 0}); }
#endif
