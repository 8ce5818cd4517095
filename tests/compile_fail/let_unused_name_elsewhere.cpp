// tests/compile_fail/let_unused_name_elsewhere.cpp: a body of let() that does not read its name, on another device.
// EXPECT: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// EXPECT: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x, tensor<float, 1, numa<0>> y) { return let(x, [y](auto) { return y * 2.f; }); }
#else
auto f(tensor<float, 1> x, tensor<float, 1> y) { return let(x, [y](auto) { return y * 2.f; }); }
#endif
