// tests/compile_fail/npy_written_of_bfloat16.cpp: write_npy() of elements that NumPy does not have.
// FIRST-LINE-GCC: npy_has_no_bfloat16.*use_float_and_cast
// EXPECT: npy_has_no_bfloat16
// EXPECT: use_float_and_cast
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const tensor<bfloat16, 1>& x) { write_npy("x.npy", x); }
#else
void f(const tensor<bfloat16, 1>& x) { write_npy("x.npy", eval(cast<float>(x))); }
#endif
