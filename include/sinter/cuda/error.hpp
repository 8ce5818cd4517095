// sinter/cuda/error.hpp: failures of the CUDA runtime and its libraries as Sinter's errors.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "sinter/core/error.hpp"

namespace sinter::cuda_impl {

/// What a person can do about an error of the runtime.
inline const char* advice(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver: return "; install a driver that is at least as new as the CUDA toolkit of this program";
    case cudaErrorNoDevice: return "; there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
    case cudaErrorNoKernelImageForDevice: return "; compile for this GPU: nvcc -arch=native, or -gencode with its sm_ number";
    case cudaErrorMemoryAllocation: return "; free tensors or use smaller batches";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure: return "; the GPU cannot be used by this process any more; compute-sanitizer names the kernel and the address";
    default: return "";
  }
}

/// Throws device_error, or out_of_memory, unless `status` is success. `what` says what was tried, and where.
inline void check(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that is reported here does not meet the next call
  const std::string text = what + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ")" + advice(status);
  if (status == cudaErrorMemoryAllocation) throw out_of_memory(text);
  throw device_error(text);
}

}  // namespace sinter::cuda_impl
