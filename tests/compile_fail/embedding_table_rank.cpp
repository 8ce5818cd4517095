// tests/compile_fail/embedding_table_rank.cpp: embedding() in a table that is no matrix.
// FIRST-LINE: table_of_rank<1>
// FIRST-LINE: use_a_table_of_rank_2
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 1> ids, tensor<float, 1> table) { embedding(ids, table); }
#else
void f(tensor<int, 1> ids, tensor<float, 1> table) { embedding(ids, table.unsqueeze(1)); }
#endif
