// tests/compile_fail/data_parallel_targets_elsewhere.cpp: backward() with targets on another device than the module's.
// FIRST-LINE: operands_on_different_devices<(sinter::)?cpu, (sinter::)?numa<0>\s?>
// FIRST-LINE: copy_one_operand_with_dot_to
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::data_parallel_over<nn::layer_norm<>, numa<0>, numa<1>>;
const auto loss = [](const auto& y, const auto& t) { return mse_loss(y, t); };

#ifdef SINTER_MUST_FAIL
void f(const model& m, const tensor<float, 2>& x, const tensor<float, 2, numa<0>>& y) { m.backward(x, y, loss); }
#else
void f(const model& m, const tensor<float, 2>& x, const tensor<float, 2>& y) { m.backward(x, y, loss); }
#endif
