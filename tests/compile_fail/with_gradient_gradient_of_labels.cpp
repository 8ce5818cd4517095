// tests/compile_fail/with_gradient_gradient_of_labels.cpp: backward returns a gradient of integers.
// FIRST-LINE: gradient_of_operand<2, (sinter::)?elements_that_have_no_gradient<int>
// FIRST-LINE: return_zero_gradient_in_its_place
#include <sinter/sinter.hpp>

using sinter::tensor;
using sinter::variable;

const auto pick = [](const auto& x, const auto& i) { return sinter::index_select(x, 0, i); };
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, const tensor<int, 1>& i) {
  return sinter::with_gradient(pick, [](const auto& g) { return sinter::gradients(g, g); })(x, i);
}
#else
auto f(const variable<float, 1>& x, const tensor<int, 1>& i) {
  return sinter::with_gradient(pick, [](const auto& g) { return sinter::gradients(g, sinter::zero_gradient); })(x, i);
}
#endif
