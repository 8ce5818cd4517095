// tests/compile_fail/mark_written_of_expression.cpp: mark_written() of a sum, which nobody has written to.
// FIRST-LINE: mark_written_of_what_has_no_memory_of_its_own<
// FIRST-LINE: pass_a_tensor_a_variable_a_buffer_or_a_module
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const tensor<float, 1>& x) { mark_written(x + x); }
#else
void f(const tensor<float, 1>& x) { mark_written(x); }
#endif
