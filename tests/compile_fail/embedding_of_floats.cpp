// tests/compile_fail/embedding_of_floats.cpp: embedding() of ids that are no integers: table and ids swapped.
// FIRST-LINE: ids_and_table_with_elements_of_type<float, int>
// FIRST-LINE: use_integer_ids_and_a_floating_table
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 2> ids, tensor<float, 2> table) { embedding(table, ids); }
#else
void f(tensor<int, 2> ids, tensor<float, 2> table) { embedding(ids, table); }
#endif
