// tests/compile_fail/einsum_equation.cpp: an equation whose term has too few letters for its operand.
// FIRST-LINE: operand_of_this_number_and_rank_does_not_fit_its_term<1, 3>
// FIRST-LINE: write_one_letter_for_each_axis_or_three_dots_for_some
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 3>& b) { return einsum<"ij,jk->ik">(a, b); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 3>& b) { return einsum<"ij,bjk->bik">(a, b); }
#endif
