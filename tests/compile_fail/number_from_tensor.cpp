// tests/compile_fail/number_from_tensor.cpp: a tensor of rank 0 returned as a number.
// FIRST-LINE: tensor_of_rank_in_place_of<0, double>
// FIRST-LINE: write_dot_item
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
double f(const tensor<float, 0>& a) { return a; }
#else
double f(const tensor<float, 0>& a) { return a.item(); }
#endif
