// tests/compile_fail/lstm_element_type.cpp: an LSTM of floats called with doubles.
// FIRST-LINE: input_that_the_module_does_not_take<
// FIRST-LINE: use_the_element_type_and_rank_that_its_forward_takes
#include <sinter/sequences.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const nn::lstm<>& lstm, tensor<double, 3> x) { lstm(x); }
#else
void f(const nn::lstm<double>& lstm, tensor<double, 3> x) { lstm(x); }
#endif
