// tests/compile_fail/comma_behind_assignment.cpp: what stands behind a comma would see the old value.
// FIRST-LINE: comma_behind_an_assignment_which_runs_at_the_semicolon
// FIRST-LINE: write_two_statements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1>& x, tensor<float, 1>& y) { x = x * 2.f, y = x; }
#else
void f(tensor<float, 1>& x, tensor<float, 1>& y) { x = x * 2.f; y = x; }
#endif
