// tests/compile_fail/roi_align_scale.cpp: the scale of boxes without its name, as PyTorch takes it.
// FIRST-LINE-GCC: options_that_are_not_in_braces.*write_them_with_names_in_braces_such_as_dot_spatial_scale
// EXPECT: options_that_are_not_in_braces
// EXPECT: write_them_with_names_in_braces_such_as_dot_spatial_scale
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 4>& x, const tensor<float, 2>& boxes) { return roi_align(x, boxes, {7, 7}, 0.25); }
#else
auto f(const tensor<float, 4>& x, const tensor<float, 2>& boxes) { return roi_align(x, boxes, {7, 7}, {.spatial_scale = 0.25}); }
#endif
