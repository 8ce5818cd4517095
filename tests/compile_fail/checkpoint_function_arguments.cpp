// tests/compile_fail/checkpoint_function_arguments.cpp: a checkpointed function of two operands that gets one.
// FIRST-LINE: checkpointed_function_that_does_not_take<.*variable<float, 1
// FIRST-LINE: take_one_tensor_or_variable_for_each_operand
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) { return checkpoint([](const auto& a, const auto& b) { return a * b; }, x); }
#else
auto f(const variable<float, 1>& x) { return checkpoint([](const auto& a, const auto& b) { return a * b; }, x, x); }
#endif
