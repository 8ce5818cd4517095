// tests/compile_fail/row_sparse_rank.cpp: row_sparse() of what is no matrix.
// FIRST-LINE: table_of_rank<3>
// FIRST-LINE: use_a_table_of_rank_2
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 3> table) { row_sparse(table); }
#else
void f(tensor<float, 3> table) { row_sparse(table.select(0, 0)); }
#endif
