// tests/compile_fail/number_with_fraction_to_view.cpp: a floating-point number assigned through a view to integers.
// FIRST-LINE: floating_literal_with_elements_of_type<int>
// FIRST-LINE: write_an_integer_literal_or_cast_the_tensor
// LINES-CLANG: 40
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 2> a) { a.in_place() = 0.5; }
#else
void f(tensor<int, 2> a) { a.in_place() = 5; }
#endif
