// tests/compile_fail/distributed_loss_number.cpp: a distributed backward of a number.
// FIRST-LINE: loss_that_is_no_variable<float
// FIRST-LINE: return_the_loss_as_the_model_gives_it
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

void f(nn::linear<float>& model, thread_communicator world, tensor<float, 2> x) {
  nn::distributed ranks(model, world);
  variable<float, 0> loss = mean(square(model(x)));
#ifdef SINTER_MUST_FAIL
  ranks.backward(loss.item(), 3);
#else
  ranks.backward(loss, 3);
#endif
}
