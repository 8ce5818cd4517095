// tests/compile_fail/roi_align_elements.cpp: regions of images given by boxes of another element type.
// FIRST-LINE: operands_of_element_types<float, double>
// FIRST-LINE: use_floating_point_operands_of_one_type
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 4>& x, const tensor<double, 2>& boxes) { return roi_align(x, boxes, 7, {.aligned = true}); }
#else
auto f(const tensor<float, 4>& x, const tensor<float, 2>& boxes) { return roi_align(x, boxes, 7, {.aligned = true}); }
#endif
