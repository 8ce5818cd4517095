// tests/compile_fail/index_of_scalar.cpp: one index more than there are axes.
// FIRST-LINE: indices_for_rank<1, 0>
// FIRST-LINE: write_dot_item
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return x[0][1][2]; }
#else
auto f(const tensor<float, 2>& x) { return x[0][1].item(); }
#endif
