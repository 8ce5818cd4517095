// tests/compile_fail/offloaded_fed_elsewhere.cpp: the module of a task that is fed where its parameters live.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads, const tensor<float, 2>& x) { return heads.fetch(0)(x); }
#else
auto f(const nn::offloaded<numa<0>, nn::linear<>>& heads, const tensor<float, 2>& x) { return heads.fetch(0)(x.to<numa<0>>()); }
#endif
