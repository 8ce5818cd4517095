// tests/compile_fail/copy_of_optimizer.cpp: two optimizers of the same parameters would each count steps of their own.
// EXPECT: (deleted function|deleted copy constructor).*sgd
// LINES-GCC: 16
// LINES-NVCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(optim::sgd& optimizer) { auto other = optimizer; }
#else
void f(optim::sgd& optimizer) { auto& other = optimizer; other.step(); }
#endif
