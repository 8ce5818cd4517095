// tests/compile_fail/float_with_int.cpp: elements of two types do not mix silently.
// FIRST-LINE: mixed_element_types<float, int>
// FIRST-LINE: convert_one_operand_with_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 2> a, tensor<int, 2> b) { return a + b; }
#else
auto f(tensor<float, 2> a, tensor<int, 2> b) { return a + cast<float>(b); }
#endif
