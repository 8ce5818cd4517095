// tests/compile_fail/sequential_devices.cpp: a sequence of modules on two devices without a transfer.
// FIRST-LINE: adjacent_modules_on_different_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: put_a_transfer_between_them_or_move_one_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<1>> b) { return nn::sequential(a, b); }
#else
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<0>> b) { return nn::sequential(a, b); }
#endif
