// tests/compile_fail/distributed_device.cpp: ranks of threads train a model of which a part is on a GPU.
// FIRST-LINE: communicator_does_not_reach<(sinter::)?cuda<0> ?>
// FIRST-LINE: pass_a_communicator_that_reaches_it_as_well
#include <sinter/ranks.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
using part = nn::linear<float, cuda<0>>;
#else
using part = nn::linear<float, cpu>;
#endif
struct model_of_two : nn::module<model_of_two> {
  nn::linear<float> body;
  nn::buffer<float, 1> mean;
  part head;
  using device_type = any_device;
  SINTER_MEMBERS(body, mean, head);
};
void f(model_of_two& model, thread_communicator world) { nn::distributed ranks(model, world); }
