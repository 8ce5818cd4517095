// tests/compile_fail/with_gradient_operand_elsewhere.cpp: a function with gradient called with operands on two devices that it does not name.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to_or_name_each_device_in_with_gradient
#include <sinter/sinter.hpp>

using sinter::cuda;
using sinter::tensor;
using sinter::variable;

const auto product = sinter::with_gradient(
    [](const auto& a, const auto& b) { return sinter::with_saved(a * b, a, b); },
    [](const auto& g, const auto& a, const auto& b) { return sinter::gradients(g * b, g * a); });
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, const tensor<float, 1, cuda<0>>& w) { return product(x, w); }
#else
auto f(const variable<float, 1>& x, const tensor<float, 1>& w) { return product(x, w); }
#endif
