// sinter/cuda/cudnn.hpp: cuDNN on the stream of a GPU, to be called on Sinter's tensors.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_CUDNN
#error "sinter: sinter/cuda/cudnn.hpp needs cuDNN: compile with -DSINTER_WITH_CUDNN=1 and link with -lcudnn"
#endif

#include <cudnn.h>

#include <mutex>
#include <vector>

#include "sinter/cuda/context.hpp"

namespace sinter {

namespace cuda_impl {

inline void check(cudnnStatus_t status, const std::string& what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  static_cast<void>(cudaGetLastError());
  std::string text = what + ": " + cudnnGetErrorString(status);
#if CUDNN_VERSION >= 90000
  char more[512] = "";
  cudnnGetLastErrorString(more, sizeof more);
  if (*more != '\0') text += std::string(" (") + more + ")";
  const bool memory = status == CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED ||
                      status == CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
#else
  const bool memory = status == CUDNN_STATUS_ALLOC_FAILED;
#endif
  if (memory) throw out_of_memory(text + "; free tensors or use smaller batches");
  throw device_error(text);
}

/// The handles for one context. cuDNN lets no two threads use a handle at once, and recommends that each keeps its own;
/// one that a thread leaves behind goes to the next new thread, and none is destroyed.
class cudnn_handles {
 public:
  explicit cudnn_handles(context& c) : context_(c) {}
  cudnn_handles(const cudnn_handles&) = delete;
  cudnn_handles& operator=(const cudnn_handles&) = delete;

  cudnnHandle_t take() {
    const std::string what = context_.name() + ": starting cuDNN";
    sinter::detail::refuse_capture(
        what,
        "that allocates; call native_cudnn once on this thread before the step is captured, as a warm-up run does");
    const use_gpu current(context_.gpu());
    cudnnHandle_t handle = nullptr;
    {
      const std::lock_guard lock(busy_);
      if (free_.empty()) {
        check(cudnnCreate(&handle), what);
      } else {
        handle = free_.back();
        free_.pop_back();
      }
    }
    const cudnnStatus_t status = cudnnSetStream(handle, context_.stream());
    if (status != CUDNN_STATUS_SUCCESS) give(handle);
    check(status, what + ": setting its stream");
    return handle;
  }
  void give(cudnnHandle_t handle) noexcept {
    const std::lock_guard lock(busy_);
    try {
      free_.push_back(handle);
    } catch (...) {
      static_cast<void>(cudnnDestroy(handle));
    }
  }

 private:
  context& context_;
  std::mutex busy_;
  std::vector<cudnnHandle_t> free_;
};

template <device D>
cudnn_handles& cudnn_handles_of() {
  static cudnn_handles& all = *new cudnn_handles(context_of<D>());
  return all;
}

/// A thread's handle for D.
template <device D>
struct cudnn_lease {
  cudnn_handles& from = cudnn_handles_of<D>();
  cudnnHandle_t handle = from.take();
  cudnn_lease() = default;
  cudnn_lease(const cudnn_lease&) = delete;
  cudnn_lease& operator=(const cudnn_lease&) = delete;
  ~cudnn_lease() { from.give(handle); }
};

}  // namespace cuda_impl

/// A handle of cuDNN for D, bound to native_stream<D>(): what it does runs in order with D's other work, and the calls
/// return at once. Each thread has its own, made when it first asks, because no two threads may use one at a time; do
/// not hand it to another thread, and do not destroy it. A thread that set another stream or mode on it sets it back.
///
/// A workspace is a tensor, `empty<std::uint8_t, D>({bytes})`, that may be released as soon as the call has returned.
/// What cuDNN computes is not seen by the tape; see device_pointer. In a captured step it can be used where cuDNN's
/// documentation allows that, with a handle that this thread has asked for before: the warm-up run of capture() does.
///
/// Errors: device_error where D is not available or cuDNN does not start, out_of_memory where it finds none; both with
/// cuDNN's own words. Calls of your own return cudnnStatus_t, which is yours to look at.
///
///     const cudnnHandle_t handle = native_cudnn<cuda<0>>();
///     cudnnConvolutionForward(handle, &one, x_layout, device_pointer(x), filter, device_pointer(w), convolution,
///                             algorithm, device_pointer(workspace), bytes, &zero, y_layout, device_pointer(y));
template <device D>
  requires is_cuda_v<D>
cudnnHandle_t native_cudnn() {
  static thread_local cuda_impl::cudnn_lease<D> mine;
  return mine.handle;
}

/// The version of the cuDNN that the program runs with, as CUDNN_VERSION: 91900 is 9.19.0.
inline std::size_t cudnn_version() { return cudnnGetVersion(); }

}  // namespace sinter
