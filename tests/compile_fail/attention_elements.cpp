// tests/compile_fail/attention_elements.cpp: attention() of queries and keys of two element types.
// LINES-CLANG: 60
// FIRST-LINE: operands_of_element_types<float, double, double>
// FIRST-LINE: use_floating_point_operands_of_one_type
#include <sinter/ops/attention.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 4> q, tensor<double, 4> k, tensor<double, 4> v) { return attention(q, k, v, {.causal = true}); }
#else
auto f(tensor<double, 4> q, tensor<double, 4> k, tensor<double, 4> v) { return attention(q, k, v, {.causal = true}); }
#endif
