// tests/compile_fail/copy_of_optimizer.cpp: two optimizers of the same parameters would each count steps of their own.
// FIRST-LINE: copy_of_an_optimizer_which_would_count_steps_of_its_own
// FIRST-LINE: take_a_reference_or_std_move_it
// LINES-NVCC: 16
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(optim::sgd& optimizer) { auto other = optimizer; }
#else
void f(optim::sgd& optimizer) { auto& other = optimizer; other.step(); }
#endif
