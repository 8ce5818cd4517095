// tests/compile_fail/reshape_of_expression.cpp: an expression in another shape.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_its_views_and_elements
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return (a + b).reshape({-1}); }
#else
auto f(const tensor<float, 2>& a, const tensor<float, 2>& b) { return eval(a + b).reshape({-1}); }
#endif
