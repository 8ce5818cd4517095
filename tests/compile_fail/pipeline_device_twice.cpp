// tests/compile_fail/pipeline_device_twice.cpp: two stages on one device.
// FIRST-LINE: two_stages_on_one_device<(sinter::)?numa<0>\s?>
// FIRST-LINE: move_one_with_dot_to_or_join_them_in_a_sequential
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<0>> b) { return nn::pipeline(a, b); }
#else
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<1>> b) { return nn::pipeline(a, b); }
#endif
