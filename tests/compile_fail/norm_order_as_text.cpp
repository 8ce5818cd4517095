// tests/compile_fail/norm_order_as_text.cpp: the order of norm() as text, as PyTorch writes it.
// FIRST-LINE-GCC: option_that_is_text.*leave_it_out_or_write_matrix_norm
// EXPECT: option_that_is_text
// EXPECT: leave_it_out_or_write_matrix_norm
// LINES-CLANG: 30
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& x) { return norm(x, "fro"); }
#else
auto f(const tensor<float, 2>& x) { return norm(x); }
#endif
