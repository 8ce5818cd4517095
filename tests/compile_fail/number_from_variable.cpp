// tests/compile_fail/number_from_variable.cpp: a loss where a number is needed.
// FIRST-LINE: tensor_of_rank_in_place_of<0, double>
// FIRST-LINE: write_dot_item
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
double f(const variable<float, 0>& loss) { return double(loss); }
#else
double f(const variable<float, 0>& loss) { return loss.item(); }
#endif
