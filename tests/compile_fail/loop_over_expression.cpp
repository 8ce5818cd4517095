// tests/compile_fail/loop_over_expression.cpp: a loop over the elements of an expression.
// FIRST-LINE: expression_not_yet_evaluated_on<(sinter::)?cpu>
// FIRST-LINE: write_eval_of_it_before_its_elements
#include <sinter/sinter.hpp>

using namespace sinter;

float f(const tensor<float, 2>& x, const tensor<float, 2>& y) {
  float largest = 0;
#ifdef SINTER_MUST_FAIL
  for (const float value : x + y) largest = value > largest ? value : largest;
#else
  for (const float value : eval(x + y)) largest = value > largest ? value : largest;
#endif
  return largest;
}
