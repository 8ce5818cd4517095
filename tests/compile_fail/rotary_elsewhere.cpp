// tests/compile_fail/rotary_elsewhere.cpp: rotary positions on another device than what they turn.
// FIRST-LINE: operands_on_different_devices<.*numa<0>.*, .*cpu
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/sinter.hpp>
#include <sinter/sequences.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2, numa<0>> x) { return rotary(x, zeros<float>({3, 2}), zeros<float>({3, 2})); }
#else
auto f(tensor<float, 2, numa<0>> x) { return rotary(x.to<cpu>(), zeros<float>({3, 2}), zeros<float>({3, 2})); }
#endif
