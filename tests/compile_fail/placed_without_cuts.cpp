// tests/compile_fail/placed_without_cuts.cpp: a chain over devices that are not named.
// FIRST-LINE: placed_without_cuts<.*sequential<
// FIRST-LINE: name_the_devices_as_in_nn_cut_0_cpu
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::sequential<nn::linear<>>& c) { return nn::placed(c); }
#else
auto f(const nn::sequential<nn::linear<>>& c) { return nn::placed<nn::cut<0, numa<0>>>(c); }
#endif
