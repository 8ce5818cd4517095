// tests/compile_fail/placed_of_layer.cpp: a module that is no chain, over devices.
// FIRST-LINE: placed_of_what_is_no_chain<.*linear<
// FIRST-LINE: give_an_nn_sequential
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(const nn::linear<>& layer) { return nn::placed<nn::cut<0, numa<0>>>(layer); }
#else
auto f(const nn::linear<>& layer) { return nn::placed<nn::cut<0, numa<0>>>(nn::sequential{layer}); }
#endif
