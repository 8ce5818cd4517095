// tests/compile_fail/checkpoint_order_2.cpp: a checkpoint of a variable that is differentiated twice.
// FIRST-LINE: checkpoint_of_variables_of_order<2>
// FIRST-LINE: use_variables_of_order_1
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 1, cpu, 2>& x) { return checkpoint([](const auto& a) { return exp(a); }, x); }
#else
auto f(const variable<float, 1, cpu, 1>& x) { return checkpoint([](const auto& a) { return exp(a); }, x); }
#endif
