// tests/compile_fail/fuse_of_plain_tensor.cpp: y = x of two tensors shares a handle; there is nothing to fuse.
// EXPECT: assignment_of_a_tensor_which_only_shares_its_handle
// EXPECT: write_plus_0_or_clone_it_outside_of_fuse
#include <sinter/sinter.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
void step(tensor<float, 1> a, tensor<float, 1> b, tensor<float, 1> c) { fuse(a = c, b = b + c); }
#else
void step(tensor<float, 1> a, tensor<float, 1> b, tensor<float, 1> c) { fuse(a = c + 0, b = b + c); }
#endif
