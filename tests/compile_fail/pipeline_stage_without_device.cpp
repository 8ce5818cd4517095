// tests/compile_fail/pipeline_stage_without_device.cpp: a stage that any device can run.
// FIRST-LINE: stage_without_a_device<.*relu\s?>
// FIRST-LINE: join_it_to_a_stage_in_a_sequential
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<1>> b) { return nn::pipeline(a, nn::relu(), b); }
#else
auto f(nn::linear<float, numa<0>> a, nn::linear<float, numa<1>> b) {
  return nn::pipeline(nn::sequential(a, nn::relu()), b);
}
#endif
