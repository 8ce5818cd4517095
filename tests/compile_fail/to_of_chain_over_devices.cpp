// tests/compile_fail/to_of_chain_over_devices.cpp: a copy on another device of a chain that goes over devices.
// FIRST-LINE: module_that_stays_on_its_devices<
// FIRST-LINE: move_the_modules_that_it_was_made_of
#include <sinter/sinter.hpp>

using namespace sinter;

using chain = nn::sequential<nn::linear<float, numa<0>>, nn::transfer<numa<0>, cpu>>;

#ifdef SINTER_MUST_FAIL
void f(const chain& c) { static_cast<void>(c.to<numa<1>>()); }
#else
void f(const nn::linear<float, numa<0>>& part) { static_cast<void>(part.to<numa<1>>()); }
#endif
