// tests/compile_fail/mean_of_integers.cpp: a reduction of an element type that it does not have.
// FIRST-LINE: element_type_without_this_op<int>
// FIRST-LINE: use_another_element_type_or_cast
// LINES-GCC: 14
// LINES-CLANG: 30
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<int, 2> a) { return mean(a); }
#else
auto f(tensor<int, 2> a) { return mean(cast<float>(a)); }
#endif
