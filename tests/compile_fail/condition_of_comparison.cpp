// tests/compile_fail/condition_of_comparison.cpp: a comparison of tensors as a condition.
// FIRST-LINE: tensor_of_rank_in_place_of<2, bool>
// FIRST-LINE: write_all_or_any_of_it_and_then_dot_item
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
int f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return a == b ? 1 : 0; }
#else
int f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return all(a == b).item() ? 1 : 0; }
#endif
