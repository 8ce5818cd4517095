// tests/compile_fail/pipeline_step_of_variable.cpp: a step with a tracked batch, whose gradient nobody would get.
// FIRST-LINE: pipeline_step_of_a_tracked_input<
// FIRST-LINE: pass_its_dot_value
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::pipeline<nn::layer_norm<float, numa<0>>, nn::layer_norm<float, numa<1>>>;

#ifdef SINTER_MUST_FAIL
void f(const model& m, const variable<float, 2, numa<0>>& x, const tensor<float, 2>& y) {
  m.step(x, y, [](const auto& a, const auto& b) { return mse_loss(a, b); });
}
#else
void f(const model& m, const variable<float, 2, numa<0>>& x, const tensor<float, 2>& y) {
  m.step(x.value(), y, [](const auto& a, const auto& b) { return mse_loss(a, b); });
}
#endif
