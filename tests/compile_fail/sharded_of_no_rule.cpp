// tests/compile_fail/sharded_of_no_rule.cpp: what is sharded is not an optimizer.
// FIRST-LINE: optim::sharded<...> takes a rule_optimizer, such as optim::adam or optim::sgd
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using what = optim::adam_options;
#else
using what = optim::adam;
#endif
void f(nn::distributed<nn::linear<float>, thread_communicator>& ranks) {
  optim::sharded<what> optimizer(ranks, {.lr = 1e-3});
}
