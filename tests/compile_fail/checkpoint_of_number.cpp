// tests/compile_fail/checkpoint_of_number.cpp: a number as operand of a checkpointed function.
// FIRST-LINE: operands_of_a_checkpoint_that_are_not_all_tensors<.*double\s?>
// FIRST-LINE: capture_the_others_in_the_function
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) { return checkpoint([](const auto& a, double b) { return a * b; }, x, 2.0); }
#else
auto f(const variable<float, 1>& x) { return checkpoint([b = 2.0](const auto& a) { return a * b; }, x); }
#endif
