// tests/compile_fail/update_by_tracked.cpp: a tensor updated in place by a tracked expression.
// FIRST-LINE: expression_is_tracked_for_gradients
// FIRST-LINE: declare_a_variable_or_use_detach
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 1> total, variable<float, 1> w) { total += w; }
#else
void f(tensor<float, 1> total, variable<float, 1> w) { total += w.detach(); }
#endif
