// tests/compile_fail/variable_of_integers.cpp: a variable of elements that have no gradient.
// FIRST-LINE: only floating-point elements have gradients; keep others in a tensor
// LINES-GCC: 20
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f() { variable<int, 2> labels; }
#else
void f() { tensor<int, 2> labels; }
#endif
