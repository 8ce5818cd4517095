// tests/compile_fail/placed_input_elsewhere.cpp: a chain over devices fed on the device of its end.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?numa<1>, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::relu, nn::tanh>;

#ifdef SINTER_MUST_FAIL
void f(const chain& c, tensor<float, 2, numa<1>> x) { nn::placed<nn::cut<0, numa<0>>, nn::cut<1, numa<1>>>(c)(x); }
#else
void f(const chain& c, tensor<float, 2, numa<0>> x) { nn::placed<nn::cut<0, numa<0>>, nn::cut<1, numa<1>>>(c)(x); }
#endif
