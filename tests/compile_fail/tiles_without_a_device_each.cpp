// tests/compile_fail/tiles_without_a_device_each.cpp: a grid of 2 x 2 tiles over three devices.
// FIRST-LINE: grid_needs_one_device_per_tile<2, 2, 3>
// FIRST-LINE: list_this_many_devices<4>
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::conv2d<>& model) { nn::tile_parallel<nn::tiles<2, 2, cpu, numa<0>, numa<1>>>(model); }
#else
void f(const nn::conv2d<>& model) { nn::tile_parallel<nn::tiles<2, 2, cpu, numa<0>, numa<1>, numa<2>>>(model); }
#endif
