// tests/cuda/rejected/all_reduce_of_bool.cu: a sum over GPUs of elements that NCCL cannot add.
// FIRST-LINE: all_reduce_cannot_add_elements_of<bool>
// FIRST-LINE: convert_it_with_cast
#include <sinter/cuda/nccl.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<bool, 2, cuda<0>> a, tensor<bool, 2, cuda<1>> b) { all_reduce(a, b); }
#else
void f(tensor<std::uint8_t, 2, cuda<0>> a, tensor<std::uint8_t, 2, cuda<1>> b) { all_reduce(a, b); }
#endif
