// tests/compile_fail/number_from_sum.cpp: a number initialised by a sum.
// FIRST-LINE: tensor_of_rank_in_place_of<0, float>
// FIRST-LINE: write_dot_item
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float f(const tensor<float, 2>& a) {
  float s = sum(a);
  return s;
}
#else
float f(const tensor<float, 2>& a) {
  float s = sum(a).item();
  return s;
}
#endif
