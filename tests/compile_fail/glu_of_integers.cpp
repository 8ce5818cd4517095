// tests/compile_fail/glu_of_integers.cpp: a gated linear unit of integers.
// FIRST-LINE: element_type_without_this_op<int>
// FIRST-LINE: use_another_element_type_or_cast
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<int, 2>& x) { return swiglu(x); }
#else
auto f(const tensor<int, 2>& x) { return swiglu(cast<float>(x)); }
#endif
