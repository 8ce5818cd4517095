// tests/compile_fail/fraction_with_int.cpp: a literal with a fraction and integer elements.
// FIRST-LINE: floating_literal_with_elements_of_type<int>
// FIRST-LINE: write_an_integer_literal_or_cast_the_tensor
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<int, 2> a) { return a * 0.5; }
#else
auto f(tensor<int, 2> a) { return a * 5; }
#endif
