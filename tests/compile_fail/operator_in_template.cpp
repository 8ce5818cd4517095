// tests/compile_fail/operator_in_template.cpp: a function template with two device parameters, called with different ones.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?cuda<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

template <device D, device E>
auto add(const tensor<float, 2, D>& a, const tensor<float, 2, E>& b) {
  return a + b;
}

#ifdef SINTER_MUST_FAIL
auto mixed(tensor<float, 2> a, tensor<float, 2, cuda<0>> b) { return add(a, b); }
#else
auto mixed(tensor<float, 2> a, tensor<float, 2> b) { return add(a, b); }
#endif
