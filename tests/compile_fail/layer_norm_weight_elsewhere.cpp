// tests/compile_fail/layer_norm_weight_elsewhere.cpp: a normalisation with weights of another device.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>(, (sinter::)?cuda<0>\s?)?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using there = cuda<0>;
#else
using there = cpu;
#endif
auto normal(const tensor<float, 2>& x, const tensor<float, 1, there>& gain, const tensor<float, 1, there>& bias) {
  return layer_norm(x, gain, bias);
}
