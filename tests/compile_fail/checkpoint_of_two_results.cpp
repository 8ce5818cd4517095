// tests/compile_fail/checkpoint_of_two_results.cpp: a checkpointed function with two results.
// FIRST-LINE: checkpointed_function_that_returns<std::pair<
// FIRST-LINE: return_one_tensor_variable_or_expression
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1>& x) { return checkpoint([](const auto& a) { return std::pair(a, a); }, x); }
#else
auto f(const variable<float, 1>& x) { return checkpoint([](const auto& a) { return concat(0, a, a); }, x); }
#endif
