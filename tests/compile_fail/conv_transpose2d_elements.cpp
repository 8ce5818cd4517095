// tests/compile_fail/conv_transpose2d_elements.cpp: conv_transpose2d() of floats with weights of double.
// FIRST-LINE: operands_of_element_types<float, double>
// FIRST-LINE: use_floating_point_operands_of_one_type
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 4> x, tensor<double, 4> w) { return conv_transpose2d(x, w); }
#else
auto f(tensor<float, 4> x, tensor<double, 4> w) { return conv_transpose2d(cast<double>(x), w); }
#endif
