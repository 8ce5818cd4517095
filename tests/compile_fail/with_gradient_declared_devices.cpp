// tests/compile_fail/with_gradient_declared_devices.cpp: operands in another order than the devices that the function names.
// FIRST-LINE: operands_on_devices<(sinter::)?numa<1>, (sinter::)?cpu>
// FIRST-LINE: pass_one_operand_on_each_of<(sinter::)?cpu, (sinter::)?numa<1>\s?>
#include <sinter/sinter.hpp>

using sinter::cpu;
using sinter::numa;
using sinter::tensor;
using sinter::variable;

const auto mixed = sinter::with_gradient<cpu, numa<1>>(
    [](const auto& x, const auto& w) { return x.template to<numa<1>>() * w; },
    [](const auto&) { return sinter::gradients(sinter::zero_gradient, sinter::zero_gradient); });
#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x, const tensor<float, 1, numa<1>>& w) { return mixed(w, x); }
#else
auto f(const variable<float, 1>& x, const tensor<float, 1, numa<1>>& w) { return mixed(x, w); }
#endif
