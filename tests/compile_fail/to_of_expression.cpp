// tests/compile_fail/to_of_expression.cpp: .to() belongs to tensors and variables; an expression is evaluated first.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(tensor<float, 1> a, tensor<float, 1, numa<0>> b) { return (a * 2).to<numa<0>>() + b; }
#else
auto f(tensor<float, 1> a, tensor<float, 1, numa<0>> b) { return eval(a * 2).to<numa<0>>() + b; }
#endif
