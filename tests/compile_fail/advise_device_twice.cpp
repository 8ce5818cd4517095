// tests/compile_fail/advise_device_twice.cpp: advice on where to put layers that names a device twice.
// FIRST-LINE: a_device_is_listed_twice_in<(sinter::)?cpu, (sinter::)?cpu\s?>
// FIRST-LINE: name_each_device_once
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::relu, nn::tanh>;
inline const auto loss = [](const auto& y, const auto& t) { return sum(y - t); };

#ifdef SINTER_MUST_FAIL
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu, cpu>(c, nn::cuts<1>{}, x, x, loss));
#else
auto f(chain c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<1>{}, x, x, loss));
#endif
