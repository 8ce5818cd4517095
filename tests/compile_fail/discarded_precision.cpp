// tests/compile_fail/discarded_precision.cpp: a guard of precision that ends at once.
// EXPECT: (nodiscard|unused-result|unused-value)
// LINES-GCC: 14
// LINES-NVCC: 20
#include <sinter/sinter.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); use_matmul_precision{matmul_precision::tf32}; }
#else
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); use_matmul_precision fast{matmul_precision::tf32}; }
#endif
