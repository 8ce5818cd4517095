// tests/compile_fail/max_pool_of_integers.cpp: max pooling of elements that are no floating-point numbers.
// FIRST-LINE: operands_of_element_types<unsigned char>
// FIRST-LINE: use_floating_point_operands_of_one_type
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<std::uint8_t, 4>& x) { return max_pool2d(x, {3, 2}, {.stride = 2}); }
#else
auto f(const tensor<std::uint8_t, 4>& x) { return max_pool2d(cast<float>(x), {3, 2}, {.stride = 2}); }
#endif
