// tests/compile_fail/tiles_device_twice.cpp: two tiles on one device.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?numa<0>, (sinter::)?numa<0> ?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::conv2d<>& model) { nn::tile_parallel<nn::tiles<2, 1, numa<0>, numa<0>>>(model); }
#else
void f(const nn::conv2d<>& model) { nn::tile_parallel<nn::tiles<2, 1, numa<0>, numa<1>>>(model); }
#endif
