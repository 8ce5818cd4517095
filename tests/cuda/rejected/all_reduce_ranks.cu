// tests/cuda/rejected/all_reduce_ranks.cu: tensors of two ranks in a sum over GPUs.
// FIRST-LINE: all_reduce_of_ranks<
// FIRST-LINE: give_tensors_of_one_rank
#include <sinter/cuda/nccl.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a, tensor<float, 1, cuda<1>> b) { all_reduce(a, b); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a, b); }
#endif
