// tests/compile_fail/color_jitter_of_bytes.cpp: color_jitter() of pixels from 0 to 255.
// FIRST-LINE-GCC: augmentation_of_pixels_that_are_integers.*cast_to_float_and_divide_by_255
// EXPECT: augmentation_of_pixels_that_are_integers
// EXPECT: cast_to_float_and_divide_by_255
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(generator& gen, const tensor<std::uint8_t, 4>& x) { return color_jitter(gen, x, {.hue = 0.1}); }
#else
auto f(generator& gen, const tensor<float, 4>& x) { return color_jitter(gen, x, {.hue = 0.1}); }
#endif
