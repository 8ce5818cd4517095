// tests/compile_fail/bincount_of_floats.cpp: bincount() counts integers; histc() is for what lies between them.
// FIRST-LINE: element_type_without_this_op<float>
// FIRST-LINE: use_another_element_type_or_cast
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> x) { return bincount(x); }
#else
auto f(tensor<int, 1> x) { return bincount(x); }
#endif
