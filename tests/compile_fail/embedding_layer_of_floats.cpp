// tests/compile_fail/embedding_layer_of_floats.cpp: an embedding layer called with numbers that are no ids.
// FIRST-LINE: ids_and_table_with_elements_of_type<float, float>
// EXPECT: use_integer_ids_and_a_floating_table
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::embedding<>& words, tensor<float, 2> x) { words(x); }
#else
void f(const nn::embedding<>& words, tensor<float, 2> x) { words(cast<int>(x)); }
#endif
