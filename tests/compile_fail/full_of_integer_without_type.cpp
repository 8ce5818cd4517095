// tests/compile_fail/full_of_integer_without_type.cpp: integers of no type.
// FIRST-LINE-GCC: no_element_type.*write_full_less_float_greater
// EXPECT: no_element_type
// EXPECT: write_full_less_float_greater
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f() { return full({2, 3}, 7); }
#else
auto f() { return full<float>({2, 3}, 7); }
#endif
