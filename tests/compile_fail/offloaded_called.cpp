// tests/compile_fail/offloaded_called.cpp: an offloaded that is called, not the module of a task.
// FIRST-LINE: offloaded_has_no_forward
// FIRST-LINE: call_what_fetch_returns
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads, const tensor<float, 2, numa<0>>& x) { return heads(x); }
#else
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads, const tensor<float, 2, numa<0>>& x) { return heads.fetch(0)(x); }
#endif
