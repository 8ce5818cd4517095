// tests/cuda/rejected/device_pointer_of_host_tensor.cu: the pointer to GPU memory of a host tensor.
// FIRST-LINE: no_gpu_memory_behind_tensors_on<
// FIRST-LINE: cpu
// FIRST-LINE: use_dot_data_there_or_copy_with_dot_to
#include <sinter/cuda/native.hpp>

using namespace sinter;

#ifdef SINTER_MUST_FAIL
float* f(tensor<float, 1> a) { return device_pointer(a); }
#else
float* f(tensor<float, 1, cuda<0>> a) { return device_pointer(a); }
#endif
