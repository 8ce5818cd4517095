// tests/cuda/rejected/all_reduce_device_twice.cu: two tensors on one GPU in a sum over GPUs.
// FIRST-LINE: a_device_is_listed_twice_in<
// FIRST-LINE: give_one_tensor_per_device
#include <sinter/cuda/nccl.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<0>> b) { all_reduce(a, b); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a, b); }
#endif
