// tests/compile_fail/index_get_axes.cpp: index_get() with coordinates of more axes than there are.
// FIRST-LINE: indices_of_axes_for_a_rank<2, 1>
// FIRST-LINE: give_at_most_an_index_for_each_axis
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x, tensor<int, 1> i) { return index_get(x, {i, i}); }
#else
auto f(tensor<float, 1> x, tensor<int, 1> i) { return index_get(x, {i}); }
#endif
