// tests/compile_fail/update_of_assignment.cpp: an update of what another update returns.
// FIRST-LINE: operand_is_an_assignment_that_has_not_run
// FIRST-LINE: write_the_assignment_as_a_statement_of_its_own
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1>& x) { (x += 1.f) *= 2.f; }
#else
void f(tensor<float, 1>& x) { x += 1.f; x *= 2.f; }
#endif
