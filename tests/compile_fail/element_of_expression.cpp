// tests/compile_fail/element_of_expression.cpp: one element of an expression, which would compute all of it.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_its_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return (a + b)(0, 1); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return eval(a + b)(0, 1); }
#endif
