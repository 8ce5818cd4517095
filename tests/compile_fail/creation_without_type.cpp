// tests/compile_fail/creation_without_type.cpp: zeros() without an element type.
// FIRST-LINE-GCC: no_element_type.*write_zeros_less_float_greater
// EXPECT: no_element_type
// EXPECT: write_zeros_less_float_greater
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return zeros({2, 3}); }
#else
auto f() { return zeros<float>({2, 3}); }
#endif
