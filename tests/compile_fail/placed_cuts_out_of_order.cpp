// tests/compile_fail/placed_cuts_out_of_order.cpp: cuts of a chain that do not ascend.
// FIRST-LINE: cuts_out_of_order<.*cut<0, .*cut<2, .*cut<1, 
// FIRST-LINE: sort_the_cuts_by_their_layer
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::linear<>, nn::relu, nn::linear<>>;

#ifdef SINTER_MUST_FAIL
auto f(const chain& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<2, numa<0>>, nn::cut<1, cpu>>(c); }
#else
auto f(const chain& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<1, numa<0>>, nn::cut<2, cpu>>(c); }
#endif
