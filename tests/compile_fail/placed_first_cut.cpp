// tests/compile_fail/placed_first_cut.cpp: cuts that leave the first layers without a device.
// FIRST-LINE: first_cut_that_is_not_at_layer_0<.*cut<1, 
// FIRST-LINE: begin_with_nn_cut_0
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::linear<>, nn::relu, nn::linear<>>;

#ifdef SINTER_MUST_FAIL
auto f(const chain& c) { return nn::placed<nn::cut<1, cpu>, nn::cut<2, numa<0>>>(c); }
#else
auto f(const chain& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<2, numa<0>>>(c); }
#endif
