// tests/compile_fail/placed_layer_cannot_move.cpp: a chain with a layer whose type does not say what it is on another device.
// FIRST-LINE: layer_that_cannot_move_to<.*fixed, (sinter::)?numa<0>\s?>
// FIRST-LINE: declare_it_template_device_D_class_Kind_or_give_it_a_rebind
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

struct fixed : nn::module<fixed> {
  nn::linear<> fc;
  SINTER_MEMBERS(fc);
};
template <device D = cpu, class Kind = nn::tracked>
struct moving : nn::module<moving<D, Kind>> {
  nn::linear<float, D, Kind> fc;
  SINTER_MEMBERS(fc);
};

#ifdef SINTER_MUST_FAIL
auto f(const nn::sequential<nn::linear<>, fixed>& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<1, numa<0>>>(c); }
#else
auto f(const nn::sequential<nn::linear<>, moving<>>& c) { return nn::placed<nn::cut<0, cpu>, nn::cut<1, numa<0>>>(c); }
#endif
