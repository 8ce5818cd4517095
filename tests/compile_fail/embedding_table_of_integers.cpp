// tests/compile_fail/embedding_table_of_integers.cpp: embedding() in a table of integers.
// FIRST-LINE: ids_and_table_with_elements_of_type<int, int>
// FIRST-LINE: use_integer_ids_and_a_floating_table
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 1> ids, tensor<int, 2> table) { embedding(ids, table); }
#else
void f(tensor<int, 1> ids, tensor<double, 2> table) { embedding(ids, table); }
#endif
