// tests/compile_fail/adaptive_pool_of_integers.cpp: adaptive pooling of integers.
// FIRST-LINE: operands_of_element_types<int>
// FIRST-LINE: use_floating_point_operands_of_one_type
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<int, 4>& x) { return adaptive_max_pool2d_with_indices(x, 1).values; }
#else
auto f(const tensor<int, 4>& x) { return adaptive_max_pool2d_with_indices(cast<double>(x), 1).values; }
#endif
