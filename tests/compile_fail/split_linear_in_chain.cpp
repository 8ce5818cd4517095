// tests/compile_fail/split_linear_in_chain.cpp: a chain that feeds columns over devices on one of them and not on the device of the layer.
// FIRST-LINE: adjacent_modules_on_different_devices<(sinter::)?numa<0>, (sinter::)?cpu\s?>
// FIRST-LINE: put_a_transfer_between_them_or_move_one_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using parts = nn::split_linear_over<float, cpu, nn::tracked, true, numa<0>, numa<1>>;

#ifdef SINTER_MUST_FAIL
auto f(const nn::layer_norm<float, numa<0>>& first, const parts& second) { return nn::sequential{first, second}; }
#else
auto f(const nn::layer_norm<float, cpu>& first, const parts& second) { return nn::sequential{first, second}; }
#endif
