// tests/cuda/rejected/device_pointer_of_expression.cu: the pointer to GPU memory of what has not been evaluated.
// FIRST-LINE: expression_not_yet_evaluated_on<
// FIRST-LINE: assign_it_to_a_tensor_first
#include <sinter/cuda/native.hpp>
#include <sinter/ops/multiply.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float* f(tensor<float, 1, cuda<0>> a) { return device_pointer(a * 2); }
#else
float* f(tensor<float, 1, cuda<0>> a) { return device_pointer(a); }
#endif
