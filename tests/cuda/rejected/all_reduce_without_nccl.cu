// tests/cuda/rejected/all_reduce_without_nccl.cu: a sum over GPUs in a file compiled without NCCL.
// FIRST-LINE: all_reduce_needs_nccl
// FIRST-LINE: compile_with_SINTER_WITH_NCCL_1_and_link_nccl
#ifdef SINTER_MUST_FAIL
#undef SINTER_WITH_NCCL
#endif
#include <sinter/sinter.hpp>

using namespace sinter;

void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a, b); }
