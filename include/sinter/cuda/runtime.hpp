// sinter/cuda/runtime.hpp: storage on a GPU, and waiting for it.
#pragma once

#include "sinter/core/storage.hpp"
#include "sinter/cuda/index_fault.hpp"

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct runs_in_this_file<D> {
  static constexpr bool value = true;
};

template <device D>
  requires is_cuda_v<D>
struct device_arena<D> {
  static auto& get() { return cuda_impl::gpu<D>::memory(); }
};

// The header of a storage stays in host memory.
template <device D>
  requires is_cuda_v<D>
struct device_runtime<D> {
  static storage_ptr allocate(std::size_t bytes) {
    auto& memory = device_arena<D>::get();
    void* const data = memory.allocate(bytes);
    auto* const s = new (std::nothrow) storage;
    if (s == nullptr) {
      memory.release(data, bytes);
      refuse<out_of_memory>({"out of host memory for the handle of a tensor on ", device_name<D>()});
    }
    s->data = data;
    s->bytes = bytes;
    s->destroy = [](storage* p) noexcept {
      device_arena<D>::get().release(p->data, p->bytes);
      delete p;
    };
    return storage_ptr(s);
  }

  static void copy_to_host(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda_impl::gpu<D>::copy_to_host(to, from, bytes);
    cuda_impl::report_fault<D>();
  }
  static void copy_from_host(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda_impl::gpu<D>::copy_from_host(to, from, bytes);
  }
  static void copy_within(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda_impl::gpu<D>::copy_within(to, from, bytes);
  }
  template <device From>
  static void copy_from_device(void* to, const void* from, std::size_t bytes) {
    if (bytes > 0) cuda_impl::gpu<D>::template copy_from_device<From>(to, from, bytes);
  }

  /// Errors: device_error unless the first and the last byte are D's.
  static void check_place(const char* op, const void* data, std::size_t bytes) {
    if (const cuda_impl::memory_place place = cuda_impl::gpu<D>::place_of(data); !place.name.empty())
      refuse<device_error>({op, ": the type says ", device_name<D>(), ", but the memory is ", place.name,
                            "; wrap it as ", place.to_wrap_as, " and copy with .to<cuda<", device_ordinal_v<D>,
                            ">>(), or take memory from cudaMalloc on that GPU"});
    if (const cuda_impl::memory_place end = cuda_impl::gpu<D>::place_of(static_cast<const char*>(data) + bytes - 1);
        !end.name.empty())
      refuse<device_error>({op, ": ", bytes, " bytes begin on ", device_name<D>(), ", but end in ", end.name,
                            "; the shape is larger than the memory that was taken for it"});
  }
};

}  // namespace sinter::detail

namespace sinter {

/// Waits until all work on D is done, and throws what went wrong in it: also index_error, where an index or label was
/// out of range.
template <device D>
  requires is_cuda_v<D>
void synchronize() {
  cuda_impl::gpu<D>::synchronize();
  cuda_impl::report_fault<D>();
}

/// Kernels that ran on D so far, those of cuBLASLt counted once per product; a replayed step counts with all of its
/// own.
template <device D>
  requires is_cuda_v<D>
std::size_t launches() {
  return cuda_impl::gpu<D>::launches();
}

}  // namespace sinter
