// tests/compile_fail/number_plus_sum.cpp: a sum added to a number.
// FIRST-LINE: tensor_of_rank_in_place_of<0, double>
// FIRST-LINE: write_dot_item
// LINES-CLANG: 32
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(double& total, const tensor<float, 2>& a) { total += sum(a); }
#else
void f(double& total, const tensor<float, 2>& a) { total += sum(a).item(); }
#endif
