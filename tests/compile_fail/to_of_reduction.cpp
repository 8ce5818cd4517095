// tests/compile_fail/to_of_reduction.cpp: .to() of a reduction, which is an expression too.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?numa<0>\s?>
// FIRST-LINE: write_eval_of_it_before_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, numa<0>> a) { auto total = sum(a).to<cpu>(); }
#else
void f(tensor<float, 2, numa<0>> a) { auto total = eval(sum(a)).to<cpu>(); }
#endif
