// tests/cuda/rejected/all_reduce_host_tensor.cu: a host tensor in a sum over GPUs.
// FIRST-LINE: all_reduce_of_host_memory_of<
// FIRST-LINE: cpu
// FIRST-LINE: copy_it_to_a_gpu_with_dot_to
#include <sinter/cuda/nccl.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cpu> b) { all_reduce(a, b); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a, b); }
#endif
