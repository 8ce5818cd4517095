// tests/compile_fail/operator_nested_auto.cpp: expressions behind several autos keep their devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto energy(tensor<float, 2> a, tensor<float, 2, cuda<1>> b) {
  auto left = relu(a) * 2;
  auto right = exp(b) + 1;
  auto difference = 1 - left / 2;
  return difference * right;
}
#else
auto energy(tensor<float, 2> a, tensor<float, 2> b) {
  auto left = relu(a) * 2;
  auto right = exp(b) + 1;
  auto difference = 1 - left / 2;
  return difference * right;
}
#endif
