// tests/compile_fail/lstm_rank.cpp: a recurrent layer takes (T,N,features) or (T,features).
// FIRST-LINE: input_that_the_module_does_not_take<(sinter::)?tensor<float, 4
#include <sinter/sequences.hpp>

using namespace sinter;

void run(const nn::lstm<>& layer, const tensor<float, 4>& x) {
#ifdef SINTER_MUST_FAIL
  layer(x);
#else
  layer(x[0]);
#endif
}
