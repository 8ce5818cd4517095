// tests/compile_fail/row_sparse_of_variable.cpp: row_sparse() of a variable, whose gradient has its kind already.
// FIRST-LINE: tracked_table
// FIRST-LINE: pass_its_dot_value
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(variable<float, 2> table) { row_sparse(table); }
#else
void f(variable<float, 2> table) { row_sparse(table.value()); }
#endif
