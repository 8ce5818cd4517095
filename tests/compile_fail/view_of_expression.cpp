// tests/compile_fail/view_of_expression.cpp: a view of an expression, which has no memory.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_its_views_and_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return (a + b).transpose(); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return eval(a + b).transpose(); }
#endif
