// tests/compile_fail/any_module_elsewhere.cpp: a module hidden in one of another device.
// FIRST-LINE: module_on_another_device_than_any_module<(sinter::)?numa<0>, (sinter::)?cpu\s?>
// FIRST-LINE: move_the_module_with_dot_to
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using layer = nn::linear<float, numa<0>>;
#else
using layer = nn::relu;
#endif
auto f(const layer& fc) { return nn::any_module<float, 2>(fc); }
