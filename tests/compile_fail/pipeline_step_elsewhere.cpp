// tests/compile_fail/pipeline_step_elsewhere.cpp: a step with a batch on another device than the first stage's.
// FIRST-LINE: module_fed_from_another_device<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_the_input_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::pipeline<nn::layer_norm<float, numa<0>>, nn::layer_norm<float, numa<1>>>;

#ifdef SINTER_MUST_FAIL
void f(const model& m, const tensor<float, 2>& x) {
  m.step(x, x, [](const auto& a, const auto& b) { return mse_loss(a, b); });
}
#else
void f(const model& m, const tensor<float, 2, numa<0>>& x) {
  m.step(x, x, [](const auto& a, const auto& b) { return mse_loss(a, b); });
}
#endif
