// tests/compile_fail/mode_as_text.cpp: the mode of interpolate() as text, as PyTorch writes it.
// FIRST-LINE-GCC: option_that_is_text.*write_dot_size_and_dot_mode_in_braces_such_as_interpolation_bilinear
// EXPECT: option_that_is_text
// EXPECT: write_dot_size_and_dot_mode_in_braces_such_as_interpolation_bilinear
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 4>& x) { return interpolate(x, {8, 8}, "bilinear"); }
#else
auto f(const tensor<float, 4>& x) { return interpolate(x, {.size = {8, 8}, .mode = interpolation::bilinear}); }
#endif
