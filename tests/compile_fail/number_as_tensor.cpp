// tests/compile_fail/number_as_tensor.cpp: a tensor made of a number.
// FIRST-LINE: number_given_to_a_handle_which_has_no_shape_of_its_own
// FIRST-LINE: write_full_of_a_shape_and_the_number
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return tensor<float, 0>(3.0f); }
#else
auto f() { return full<float>(3.0f); }
#endif
