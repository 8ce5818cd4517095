// tests/compile_fail/gaussian_nll_variance.cpp: one variance for all images.
// FIRST-LINE: prediction_and_variance_of_ranks<3, 1\s?>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 3>& x, const tensor<float, 1>& v) { return gaussian_nll_loss(x, x, v); }
#else
auto f(const variable<float, 3>& x, const tensor<float, 1>& v) { return gaussian_nll_loss(x, x, v.reshape({1, 1, 1})); }
#endif
