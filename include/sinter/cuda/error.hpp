// sinter/cuda/error.hpp: failures of the CUDA runtime and its libraries as Sinter's errors.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "sinter/core/error.hpp"

namespace sinter::cuda_impl {

/// 13.0 for 13000.
inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// What a person can do about an error of the runtime.
inline std::string advice(cudaError_t status) {
  switch (status) {
    case cudaErrorInsufficientDriver: {
      int driver = 0;
      static_cast<void>(cudaDriverGetVersion(&driver));
      if (driver == 0) return "; there is no NVIDIA driver on this machine";
      return "; the driver is for CUDA " + version_text(driver) + ", this program is built with " +
             version_text(CUDART_VERSION) + ": install a newer driver, or build with an older toolkit";
    }
    case cudaErrorNoDevice:
      return "; there is no GPU, or CUDA_VISIBLE_DEVICES hides it";
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      return "; this program holds no code for this GPU: compile with nvcc -arch=native, or -gencode with its sm_ "
             "number";
    case cudaErrorMemoryAllocation:
      return "; free tensors or use smaller batches";
    case cudaErrorStreamCaptureUnsupported:
    case cudaErrorStreamCaptureInvalidated:
      return "; something in the captured step cannot be captured";
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchFailure:
      return "; the GPU cannot be used by this process any more; CUDA_LAUNCH_BLOCKING=1 in the environment names the "
             "statement, compute-sanitizer the kernel and the address";
    default:
      return "";
  }
}
inline std::string describe(cudaError_t status) {
  return std::string(cudaGetErrorString(status)) + " (" + cudaGetErrorName(status) + ")" + advice(status);
}

/// Throws device_error, or out_of_memory, unless `status` is success. `what` says what was tried, and where.
inline void check(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // an error that is reported here does not meet the next call
  const std::string text = what + ": " + describe(status);
  if (status == cudaErrorMemoryAllocation) throw out_of_memory(text);
  throw device_error(text);
}

/// Clears the error of a call that releases something. No caller could act on it, and the next call must not report it.
inline void ignore(cudaError_t status) noexcept {
  if (status != cudaSuccess) static_cast<void>(cudaGetLastError());
}
/// The status of a library's call, which leaves no error behind.
template <class Status>
void ignore(Status) noexcept {}

}  // namespace sinter::cuda_impl
