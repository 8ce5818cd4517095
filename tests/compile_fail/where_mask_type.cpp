// tests/compile_fail/where_mask_type.cpp: where() with a mask of numbers.
// FIRST-LINE: mask_with_elements_of_type<float>
// FIRST-LINE: compare_with_zero_or_cast_to_bool
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x) { return where(x, x, 0); }
#else
auto f(tensor<float, 1> x) { return where(x > 0, x, 0); }
#endif
