// tests/compile_fail/data_parallel_shards_elsewhere.cpp: backward() of shards in another order than the replicas.
// FIRST-LINE: shards_of_other_devices_than_the_replicas<
// FIRST-LINE: list_the_devices_of_the_replicas
#include <sinter/parallel.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

using model = nn::data_parallel_over<nn::layer_norm<>, numa<0>, numa<1>>;
const auto loss = [](const auto& y, const auto& t) { return mse_loss(y, t); };

#ifdef SINTER_MUST_FAIL
void f(const model& m, const tensor<float, 2>& x) { m.backward(nn::shard<numa<1>, numa<0>>(x), x, loss); }
#else
void f(const model& m, const tensor<float, 2>& x) { m.backward(nn::shard<numa<0>, numa<1>>(x), x, loss); }
#endif
