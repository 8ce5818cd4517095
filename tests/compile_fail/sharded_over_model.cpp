// tests/compile_fail/sharded_over_model.cpp: a sharded optimizer is made of the model, which knows no ranks.
// FIRST-LINE: sharding_over_what_is_not_distributed<
// FIRST-LINE: pass_the_nn_distributed_of_the_model
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

void f(nn::linear<float>& model, thread_communicator world) {
  nn::distributed ranks(model, world);
#ifdef SINTER_MUST_FAIL
  optim::sharded<optim::adam> optimizer(model, {.lr = 1e-3});
#else
  optim::sharded<optim::adam> optimizer(ranks, {.lr = 1e-3});
#endif
}
