// tests/compile_fail/advise_layer_cannot_move.cpp: advice on a chain with a layer that is tied to its device.
// FIRST-LINE: layer_that_cannot_move_to<.*transfer<.*, (sinter::)?cpu\s?>
// FIRST-LINE: declare_it_template_device_D_class_Kind_or_give_it_a_rebind
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using moving = nn::sequential<nn::relu, nn::tanh>;
using tied = nn::sequential<nn::relu, nn::transfer<cpu, numa<0>>>;
inline const auto loss = [](const auto& y, const auto& t) { return sum(y - t); };

#ifdef SINTER_MUST_FAIL
auto f(tied c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<1>{}, x, x, loss));
#else
auto f(moving c, tensor<double, 2> x) -> decltype(nn::advise<cpu, numa<0>>(c, nn::cuts<1>{}, x, x, loss));
#endif
