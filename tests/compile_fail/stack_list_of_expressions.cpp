// tests/compile_fail/stack_list_of_expressions.cpp: stack of a list of an expression and a tensor, which have different types.
// FIRST-LINE: list_of_parts_which_are_not_tensors_of_one_type
// FIRST-LINE: pass_the_axis_first_and_then_each_part
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const tensor<float, 2>& a) { return stack({a + 1, a}); }
#else
auto f(const tensor<float, 2>& a) { return stack(0, a + 1, a); }
#endif
