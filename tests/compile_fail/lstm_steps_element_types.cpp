// tests/compile_fail/lstm_steps_element_types.cpp: operands of a recurrence have one type.
// FIRST-LINE: operands_of_element_types<float, double, float, float>
// EXPECT: use_matrices_of_one_floating_point_type
#include <sinter/sequences.hpp>

using namespace sinter;

void run(const tensor<float, 2>& x, const tensor<double, 2>& w, const tensor<float, 2>& h) {
#ifdef SINTER_MUST_FAIL
  lstm_steps(sequence_steps::even(1, 1), x, w, h, h);
#else
  lstm_steps(sequence_steps::even(1, 1), x, cast<float>(w), h, h);
#endif
}
