// tests/compile_fail/element_type_without_op.cpp: bits of floats have no `and`.
// FIRST-LINE: element_type_without_this_op<float>
// FIRST-LINE: use_another_element_type_or_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> a) { return a & a; }
#else
auto f(tensor<int, 1> a) { return a & a; }
#endif
