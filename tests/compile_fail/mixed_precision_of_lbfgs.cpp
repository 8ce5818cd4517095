// tests/compile_fail/mixed_precision_of_lbfgs.cpp: lbfgs keeps doubles of its own, and steps by a function.
// FIRST-LINE: mixed_precision<...> takes a rule_optimizer
// LINES-GCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using optimizer = optim::lbfgs;
#else
using optimizer = optim::adam;
#endif

void f(nn::linear<half>& model) { optim::mixed_precision<optimizer> policy(model); }
