// tests/compile_fail/lstm_input_elsewhere.cpp: a recurrent layer takes what is on its device.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<0>, (sinter::)?cpu>
// EXPECT: copy_the_input_with_dot_to
#include <sinter/sequences.hpp>

using namespace sinter;

void run(const nn::lstm<>& layer, const tensor<float, 3, numa<0>>& x) {
#ifdef SINTER_MUST_FAIL
  layer(x);
#else
  layer(x.to<cpu>());
#endif
}
