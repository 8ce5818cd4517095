// tests/compile_fail/distributed_of_temporary.cpp: a distributed of a model that nothing keeps.
// FIRST-LINE: a_model_that_ends_with_this_statement<
// FIRST-LINE: keep_the_model_in_a_variable
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

void f(thread_communicator world, generator gen) {
#ifdef SINTER_MUST_FAIL
  nn::distributed ranks(nn::linear(3, 2, gen), world);
#else
  nn::linear model(3, 2, gen);
  nn::distributed ranks(model, world);
#endif
}
