// tests/compile_fail/attention_mask.cpp: attention() with a mask of whole numbers.
// LINES-CLANG: 60
// FIRST-LINE: operands_of_element_types<float, float, float, int>
// FIRST-LINE: use_a_mask_of_bool_or_of_the_element_type_of_the_queries
#include <sinter/ops/attention.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using numbers = tensor<float, 4>;
#ifdef SINTER_MUST_FAIL
auto f(numbers q, numbers k, numbers v, tensor<int, 2> mask) { return attention(q, k, v, mask); }
#else
auto f(numbers q, numbers k, numbers v, tensor<bool, 2> mask) { return attention(q, k, v, mask); }
#endif
