// tests/compile_fail/softmax_of_integers.cpp: an op with a kernel of its own over elements it does not take.
// FIRST-LINE: operands_of_element_types<int>
// FIRST-LINE: use_floating_point_operands_of_one_type
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto probabilities(const tensor<int, 2>& scores) { return softmax(scores, 1); }
#else
auto probabilities(const tensor<int, 2>& scores) { return softmax(cast<float>(scores), 1); }
#endif
