// sinter/cuda/copy_beside.hpp: one copy on a device's copy stream, beside its kernels.
#pragma once

#include <utility>

#include "sinter/cuda/context.hpp"

namespace sinter::cuda_impl {

/// Puts a copy on the copy stream of a device. It runs after all that was put before on the streams of that device and
/// of the other one: the kernels that write its source, and those that still use the block of its destination. These
/// streams do not wait for the copy. So it must be over before anybody else may use source and destination: the owner
/// calls finish(), or is_over() where it knows that; after an error the destructor waits.
class copy_beside {
 public:
  /// Callers keep captures off both devices until this returns: an event that is recorded in a capture would draw the
  /// copy stream into it. From then on a capture may begin. Errors: device_error.
  copy_beside(context& on, context& other, std::string what)
      : stream_(on.copy_stream()), gpu_(on.gpu()), what_(std::move(what)) {
    on.let_copies_wait_for(on);
    if (&other != &on) on.let_copies_wait_for(other);
  }
  copy_beside(const copy_beside&) = delete;
  copy_beside& operator=(const copy_beside&) = delete;
  ~copy_beside() {
    if (over_) return;
    const use_gpu current(gpu_, std::nothrow);
    ignore(current.status());
    ignore(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream() const { return stream_; }

  /// Returns when the copy is over. Errors: device_error.
  void finish() {
    const use_gpu current(gpu_);
    check(cudaStreamSynchronize(stream_), what_);
    over_ = true;
  }
  void is_over() { over_ = true; }

 private:
  cudaStream_t stream_;
  int gpu_;
  std::string what_;
  bool over_ = false;
};

}  // namespace sinter::cuda_impl
