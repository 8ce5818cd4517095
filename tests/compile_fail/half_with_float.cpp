// tests/compile_fail/half_with_float.cpp: elements of half and float do not mix silently.
// FIRST-LINE: mixed_element_types<(sinter::)?half, float>
// FIRST-LINE: convert_one_operand_with_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<half, 2> a, tensor<float, 2> b) { return a + b; }
#else
auto f(tensor<half, 2> a, tensor<float, 2> b) { return cast<float>(a) + b; }
#endif
