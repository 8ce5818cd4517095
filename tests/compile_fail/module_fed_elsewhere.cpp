// tests/compile_fail/module_fed_elsewhere.cpp: a module fed from another device.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<1>, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::linear<float, numa<0>>& layer, tensor<float, 2, numa<1>> x) { layer(x); }
#else
void f(const nn::linear<float, numa<0>>& layer, tensor<float, 2, numa<0>> x) { layer(x); }
#endif
