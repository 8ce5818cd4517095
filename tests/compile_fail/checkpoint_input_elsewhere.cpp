// tests/compile_fail/checkpoint_input_elsewhere.cpp: a checkpointed module that is fed from another device.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<0>, (sinter::)?cpu\s?>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::layer_norm<>& norm, const variable<float, 2, numa<0>>& x) { return checkpoint(norm, x); }
#else
auto f(const nn::layer_norm<>& norm, const variable<float, 2, numa<0>>& x) { return checkpoint(norm, x.to<cpu>()); }
#endif
