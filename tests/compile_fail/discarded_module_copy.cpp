// tests/compile_fail/discarded_module_copy.cpp: a copy of a module on another device that nobody keeps.
// EXPECT: (nodiscard|unused-result|unused-value)
// LINES-GCC: 14
// LINES-NVCC: 20
#include <sinter/sinter.hpp>

#pragma GCC diagnostic error "-Wunused-result"
#pragma GCC diagnostic error "-Wunused-value"

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); nn::relu().to<numa<0>>(); }
#else
void f(tensor<float, 2>& a, tensor<float, 2>& b) { static_cast<void>(a), static_cast<void>(b); auto m = nn::relu().to<numa<0>>(); m.eval(); }
#endif
