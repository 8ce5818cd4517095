// tests/compile_fail/number_to_handle.cpp: a number has no shape for a tensor to take; elements are written through a view.
// FIRST-LINE: number_given_to_a_handle_which_has_no_shape_of_its_own
// FIRST-LINE: write_x_dot_in_place_equals_number_or_full
// LINES-CLANG: 37
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2> a) { a = 0.f; }
#else
void f(tensor<float, 2> a) { a.in_place() = 0.f; }
#endif
