// tests/compile_fail/advise_cut_beyond_chain.cpp: advice with a candidate cut behind the chain.
// FIRST-LINE: candidate_cuts_that_do_not_fit_a_chain_of_layers<.*cuts<2>, 2\s?>
// FIRST-LINE: write_layer_numbers_from_1_on_in_order
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::relu, nn::tanh>;
inline const auto loss = [](const auto& y, const auto& t) { return sum(y - t); };

#ifdef SINTER_MUST_FAIL
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<2>{}, x, x, loss));
#else
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<1>{}, x, x, loss));
#endif
