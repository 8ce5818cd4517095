// tests/compile_fail/pipeline_stage_over_devices.cpp: a stage that ends on another device than it begins on.
// FIRST-LINE: stage_on_several_devices<(sinter::)?numa<0>, (sinter::)?numa<1>\s?>
// FIRST-LINE: make_each_part_a_stage
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using layer = nn::linear<float, numa<0>>;
using transfer = nn::transfer<numa<0>, numa<1>>;

#ifdef SINTER_MUST_FAIL
auto f(layer a, nn::linear<float, numa<2>> b) { return nn::pipeline(nn::sequential(a, transfer()), b); }
#else
auto f(layer a, nn::linear<float, numa<2>> b) { return nn::pipeline(nn::sequential(a), b); }
#endif
