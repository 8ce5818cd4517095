// tests/cuda/rejected/all_reduce_elements.cu: tensors of two element types in a sum over GPUs.
// FIRST-LINE: all_reduce_of_mixed_element_types<float, double>
// FIRST-LINE: give_tensors_of_one_element_type
#include <sinter/cuda/nccl.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a, tensor<double, 2, cuda<1>> b) { all_reduce(a, b); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a, b); }
#endif
