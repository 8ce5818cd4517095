// tests/compile_fail/assignment_as_operand.cpp: an assignment inside a formula has not run yet.
// FIRST-LINE: operand_is_an_assignment_that_has_not_run
// FIRST-LINE: write_the_assignment_as_a_statement_of_its_own
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
tensor<float, 1> f(tensor<float, 1>& x) { return (x += 1.f) * 2.f; }
#else
tensor<float, 1> f(tensor<float, 1>& x) { x += 1.f; return x * 2.f; }
#endif
