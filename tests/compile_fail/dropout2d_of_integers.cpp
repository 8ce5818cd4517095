// tests/compile_fail/dropout2d_of_integers.cpp: dropout2d() of elements without fractions.
// FIRST-LINE: operands_of_element_types<int>
// FIRST-LINE: use_floating_point_operands_of_one_type
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto dropped(const tensor<int, 4>& x, generator& gen) { return dropout2d(x, 0.5, gen); }
#else
auto dropped(const tensor<int, 4>& x, generator& gen) { return dropout2d(cast<float>(x), 0.5, gen); }
#endif
