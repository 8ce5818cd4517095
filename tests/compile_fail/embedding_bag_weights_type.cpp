// tests/compile_fail/embedding_bag_weights_type.cpp: embedding_bag() with weights of another type than the table.
// FIRST-LINE: weights_and_table_with_elements_of_type<double, float>
// FIRST-LINE: use_weights_of_the_element_type_of_the_table
// LINES-CLANG: 60
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<int, 2> ids, tensor<float, 2> table, tensor<double, 2> weights) { embedding_bag(ids, table, weights); }
#else
void f(tensor<int, 2> ids, tensor<float, 2> table, tensor<float, 2> weights) { embedding_bag(ids, table, weights); }
#endif
