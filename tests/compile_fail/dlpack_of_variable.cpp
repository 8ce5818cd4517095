// tests/compile_fail/dlpack_of_variable.cpp: a variable for another library.
// FIRST-LINE-GCC: export_of_a_variable.*pass_its_value_with_dot_value
// EXPECT: export_of_a_variable
// EXPECT: pass_its_value_with_dot_value
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const variable<float, 2>& w) { return to_dlpack(w); }
#else
auto f(const variable<float, 2>& w) { return to_dlpack(w.value()); }
#endif
