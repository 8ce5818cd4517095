// tests/compile_fail/interpolate_of_integers.cpp: interpolate() of elements without fractions.
// FIRST-LINE: operands_of_element_types<int>
// FIRST-LINE: use_floating_point_operands_of_one_type
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto larger(const tensor<int, 4>& x) { return interpolate(x, {.size = 8}); }
#else
auto larger(const tensor<int, 4>& x) { return interpolate(cast<float>(x), {.size = 8}); }
#endif
