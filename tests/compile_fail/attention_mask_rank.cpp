// tests/compile_fail/attention_mask_rank.cpp: attention() without heads, with a mask for heads.
// LINES-CLANG: 60
// FIRST-LINE: operands_of_ranks<3, 3, 3, 4>
// FIRST-LINE: use_a_mask_of_rank<2, 3>
#include <sinter/ops/attention.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using numbers = tensor<float, 3>;
#ifdef SINTER_MUST_FAIL
auto f(numbers q, numbers k, numbers v, tensor<bool, 4> mask) { return attention(q, k, v, mask); }
#else
auto f(numbers q, numbers k, numbers v, tensor<bool, 4> mask) { return attention(q, k, v, mask.select(0, 0)); }
#endif
