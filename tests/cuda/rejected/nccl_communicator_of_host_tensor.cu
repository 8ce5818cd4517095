// tests/cuda/rejected/nccl_communicator_of_host_tensor.cu: a host tensor in a sum by a communicator over NCCL.
// FIRST-LINE: communicator_does_not_reach<
// FIRST-LINE: copy_it_with_dot_to_a_device_that_it_reaches
#include <sinter/ranks/nccl/communicator.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(nccl_communicator<cuda<0>>& ranks, tensor<float, 1, cpu> a) { ranks.all_reduce(a); }
#else
void f(nccl_communicator<cuda<0>>& ranks, tensor<float, 1, cuda<0>> a) { ranks.all_reduce(a).get(); }
#endif
