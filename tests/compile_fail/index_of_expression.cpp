// tests/compile_fail/index_of_expression.cpp: a row of an expression.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_its_views_and_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return (a + b)[0]; }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return eval(a + b)[0]; }
#endif
