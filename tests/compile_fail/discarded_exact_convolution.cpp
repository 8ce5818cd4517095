// tests/compile_fail/discarded_exact_convolution.cpp: a guard of convolutions that ends at once.
// EXPECT: (nodiscard|unused-result|unused-value)
// LINES-GCC: 14
// LINES-NVCC: 20
#include <sinter/sinter.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); exact_convolution{}; }
#else
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); exact_convolution exact; }
#endif
