// tests/compile_fail/placed_cut_beyond_chain.cpp: a cut before a layer that the chain does not have.
// FIRST-LINE: cut_beyond_a_chain_of_layers<.*cut<3, .*, 3\s?>
// FIRST-LINE: cut_before_a_layer_that_is_there
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::linear<>, nn::relu, nn::linear<>>;

#ifdef SINTER_MUST_FAIL
auto f(const chain& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<3, numa<0>>>(c); }
#else
auto f(const chain& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<2, numa<0>>>(c); }
#endif
