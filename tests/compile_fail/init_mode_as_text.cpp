// tests/compile_fail/init_mode_as_text.cpp: the mode of kaiming_normal_ as text, as PyTorch writes it.
// FIRST-LINE-GCC: option_that_is_text.*write_fan_in_or_fan_out
// EXPECT: option_that_is_text
// EXPECT: write_fan_in_or_fan_out
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(const variable<float, 2>& w, generator& gen) { nn::init::kaiming_normal_(w, gen, {.mode = "fan_out"}); }
#else
void f(const variable<float, 2>& w, generator& gen) { nn::init::kaiming_normal_(w, gen, {.mode = nn::init::fan::out}); }
#endif
