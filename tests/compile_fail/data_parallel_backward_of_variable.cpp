// tests/compile_fail/data_parallel_backward_of_variable.cpp: a tracked batch, whose gradient nobody would get.
// FIRST-LINE: backward_of_a_batch_that_is_no_tensor<
// FIRST-LINE: pass_a_tensor_or_shards_and_of_a_variable_its_dot_value
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::data_parallel_over<nn::layer_norm<>, numa<0>, numa<1>>;
const auto loss = [](const auto& y, const auto& t) { return mse_loss(y, t); };

#ifdef SINTER_MUST_FAIL
void f(const model& m, const variable<float, 2>& x, const tensor<float, 2>& y) { m.backward(x, y, loss); }
#else
void f(const model& m, const variable<float, 2>& x, const tensor<float, 2>& y) { m.backward(x.value(), y, loss); }
#endif
