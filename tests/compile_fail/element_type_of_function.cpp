// tests/compile_fail/element_type_of_function.cpp: sigmoid() is for float and double.
// FIRST-LINE: element_type_without_this_op<int>
// FIRST-LINE: use_another_element_type_or_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<int, 1> a) { return sigmoid(a); }
#else
auto f(tensor<float, 1> a) { return sigmoid(a); }
#endif
