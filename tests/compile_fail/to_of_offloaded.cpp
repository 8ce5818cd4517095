// tests/compile_fail/to_of_offloaded.cpp: a copy on another device of a module that is tied to its devices.
// FIRST-LINE: module_that_stays_on_its_devices<
// FIRST-LINE: move_the_modules_that_it_was_made_of
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using heads = nn::offloaded<numa<0>, nn::linear<>>;

#ifdef SINTER_MUST_FAIL
void f(const heads& h) { static_cast<void>(h.to<numa<1>>()); }
#else
void f(const nn::linear<>& part) { static_cast<void>(part.to<numa<1>>()); }
#endif
