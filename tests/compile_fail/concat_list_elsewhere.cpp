// tests/compile_fail/concat_list_elsewhere.cpp: concat of a list whose parts are on two devices.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<1>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2, numa<1>>& n) { return concat({a, n}); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2, numa<1>>& n) { return concat({a, n.to<cpu>()}); }
#endif
