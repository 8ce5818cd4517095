// tests/compile_fail/tiles_of_a_list.cpp: a device where tile_parallel() takes a grid.
// FIRST-LINE: grid_that_is_no_tiles<(sinter::)?numa<0> ?>
// FIRST-LINE: name_rows_columns_and_devices_as_in_tiles_1_2_numa_0_numa_1
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::conv2d<>& model) { nn::tile_parallel<numa<0>>(model); }
#else
void f(const nn::conv2d<>& model) { nn::tile_parallel<nn::tiles<1, 1, numa<0>>>(model); }
#endif
