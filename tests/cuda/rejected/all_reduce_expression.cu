// tests/cuda/rejected/all_reduce_expression.cu: an expression that has not been evaluated in a sum over GPUs.
// FIRST-LINE: expression_not_yet_evaluated_on<
// FIRST-LINE: assign_it_to_a_tensor_first
#include <sinter/cuda/nccl.hpp>
#include <sinter/ops/multiply.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(a * 2, b * 2); }
#else
void f(tensor<float, 2, cuda<0>> a, tensor<float, 2, cuda<1>> b) { all_reduce(eval(a * 2), eval(b * 2)); }
#endif
