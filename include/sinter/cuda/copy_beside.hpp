// sinter/cuda/copy_beside.hpp: one copy on a device's copy stream, beside its kernels.
#pragma once

#include <utility>

#include "sinter/cuda/context.hpp"

namespace sinter::cuda_impl {

/// A copy on the copy stream of a device. It must run after the kernels that write its source, and after those that
/// still use the block of its destination: the owner calls reads_from() and writes_to() before it puts the copy there.
/// Nothing waits for the copy on other streams. So it must be over before anybody else may use source and destination:
/// the owner calls finish(), or is_over() where it knows that; after an error the destructor waits.
///
/// The owner keeps captures off the devices until both calls have returned: an event that is recorded in a capture
/// would draw the copy stream into it. From then on a capture may begin.
class copy_beside {
 public:
  copy_beside(context& on, std::string what) : on_(on), stream_(on.copy_stream()), what_(std::move(what)) {}
  copy_beside(const copy_beside&) = delete;
  copy_beside& operator=(const copy_beside&) = delete;
  ~copy_beside() {
    if (over_) return;
    const use_gpu current(on_.gpu(), std::nothrow);
    ignore(current.status());
    ignore(cudaStreamSynchronize(stream_));
  }

  cudaStream_t stream() const { return stream_; }

  void reads_from(context& source) { on_.let_copies_wait_for(source); }
  void writes_to(const void* block) { on_.let_copies_write(block); }

  /// Returns when the copy is over. Errors: device_error.
  void finish() {
    const use_gpu current(on_.gpu());
    check(cudaStreamSynchronize(stream_), what_);
    over_ = true;
  }
  void is_over() { over_ = true; }

 private:
  context& on_;
  cudaStream_t stream_;
  std::string what_;
  bool over_ = false;
};

}  // namespace sinter::cuda_impl
