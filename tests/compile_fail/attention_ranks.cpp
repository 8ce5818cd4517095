// tests/compile_fail/attention_ranks.cpp: scaled_dot_product_attention() of queries with heads and keys without.
// LINES-CLANG: 60
// FIRST-LINE: operands_of_ranks<4, 3, 3>
// FIRST-LINE: use_queries_keys_and_values_of_one_rank_3_or_4
#include <sinter/ops/attention.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 4> q, tensor<float, 3> k, tensor<float, 3> v) { return scaled_dot_product_attention(q, k, v); }
#else
auto f(tensor<float, 3> q, tensor<float, 3> k, tensor<float, 3> v) { return scaled_dot_product_attention(q, k, v); }
#endif
