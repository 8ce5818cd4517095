// tests/compile_fail/update_expression.cpp: an expression that has not run has no elements to update.
// FIRST-LINE: left_side_has_not_been_evaluated
// FIRST-LINE: assign_it_to_a_tensor_first
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> a) { (a * 2) += a; }
#else
void f(tensor<float, 1> a) { a += a; }
#endif
