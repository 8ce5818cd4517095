// tests/compile_fail/mixup_of_bytes.cpp: mixup of images of bytes.
// FIRST-LINE-GCC: mixup_of_integers.*cast_to_float_and_divide_by_255
// EXPECT: mixup_of_integers
// EXPECT: cast_to_float_and_divide_by_255
#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(generator& gen, const tensor<std::uint8_t, 4>& x, const tensor<int, 1>& y) { return mixup(gen, x, y, 4); }
#else
auto f(generator& gen, const tensor<std::uint8_t, 4>& x, const tensor<int, 1>& y) { return mixup(gen, eval(cast<float>(x) / 255), y, 4); }
#endif
