// tests/compile_fail/with_gradient_gradient_rank.cpp: backward returns a gradient of another rank.
// FIRST-LINE: gradient_of_operand<1, (sinter::)?conversion_between_ranks<0, 2>
// FIRST-LINE: use_reshape_squeeze_or_unsqueeze
#include <sinter/sinter.hpp>

using sinter::variable;

const auto sum_of_all = [](const auto& x) { return sinter::with_saved(sum(x), x); };
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& x) {
  return sinter::with_gradient(sum_of_all, [](const auto& g, const auto&) { return g; })(x);
}
#else
auto f(const variable<float, 2>& x) {
  return sinter::with_gradient(sum_of_all, [](const auto& g, const auto& a) { return g + 0 * a; })(x);
}
#endif
