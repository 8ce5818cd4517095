// tests/compile_fail/grad_elsewhere.cpp: copies between devices have no second derivative, so y cannot depend on an x elsewhere.
// EXPECT: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: keep_variables_of_order_2_on_one_device
// LINES-CLANG: 26
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(variable<float, 0, cpu, 2> y, variable<float, 1, numa<0>, 2> x) { return grad(y, x); }
#else
auto f(variable<float, 0, cpu, 2> y, variable<float, 1, cpu, 2> x) { return grad(y, x); }
#endif
