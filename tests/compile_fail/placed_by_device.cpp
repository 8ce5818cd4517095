// tests/compile_fail/placed_by_device.cpp: a chain over devices that are named without cuts.
// FIRST-LINE: placed_by_what_is_no_cut<(sinter::)?numa<0>\s?>
// FIRST-LINE: name_the_devices_as_in_nn_cut_0_cpu
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::sequential<nn::linear<>>& c) { return nn::placed<numa<0>>(c); }
#else
auto f(const nn::sequential<nn::linear<>>& c) { return nn::placed<nn::cut<0, numa<0>>>(c); }
#endif
