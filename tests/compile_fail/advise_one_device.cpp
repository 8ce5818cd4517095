// tests/compile_fail/advise_one_device.cpp: advice on where to put layers that names one device.
// FIRST-LINE: advice_that_has_no_choice_but<(sinter::)?cpu\s?>
// FIRST-LINE: name_two_devices_or_more
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::relu, nn::tanh>;
inline const auto loss = [](const auto& y, const auto& t) { return sum(y - t); };

#ifdef SINTER_MUST_FAIL
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu>(c, nn::cuts<1>{}, x, x, loss));
#else
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<1>{}, x, x, loss));
#endif
