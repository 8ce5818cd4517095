// tests/compile_fail/quantile_probabilities_rank.cpp: quantiles at a matrix of probabilities.
// FIRST-LINE: probabilities_of_rank<2>
// FIRST-LINE: use_a_number_or_probabilities_of_rank_1
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x, const tensor<float, 2>& q) { return quantile(x, q, 1); }
#else
auto f(const tensor<float, 2>& x, const tensor<float, 2>& q) { return quantile(x, q.flatten(), 1); }
#endif
