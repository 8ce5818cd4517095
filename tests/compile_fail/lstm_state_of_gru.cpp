// tests/compile_fail/lstm_state_of_gru.cpp: an LSTM called with the state of a GRU, which has no cells.
// FIRST-LINE: inputs_that_the_module_does_not_take<
// FIRST-LINE: use_what_its_forward_takes
#include <sinter/sequences.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::lstm<>& lstm, tensor<float, 3> x, tensor<float, 3> h) { lstm(x, h); }
#else
void f(const nn::lstm<>& lstm, tensor<float, 3> x, tensor<float, 3> h) { lstm(x, nn::lstm_state{h, h}); }
#endif
