// tests/compile_fail/gru_state_elsewhere.cpp: a state lives where the layer does.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<0>, (sinter::)?cpu>
// EXPECT: copy_the_input_with_dot_to
#include <sinter/sequences.hpp>

using namespace sinter;

void run(const nn::gru<>& layer, const tensor<float, 3>& x, const tensor<float, 3, numa<0>>& h) {
#ifdef SINTER_MUST_FAIL
  layer(x, h);
#else
  layer(x, h.to<cpu>());
#endif
}
