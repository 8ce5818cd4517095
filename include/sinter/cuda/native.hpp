// sinter/cuda/native.hpp: the stream and the memory behind tensors on a GPU, for kernels and libraries of the caller's
// own.
#pragma once

#include "sinter/core/tensor.hpp"
#include "sinter/cuda/context.hpp"

namespace sinter {

template <class>
struct no_gpu_memory_behind_tensors_on;
struct no_device_pointer_of_a_variable;
struct use_dot_data_there_or_copy_with_dot_to;
struct assign_it_to_a_tensor_first;
struct take_the_pointer_of_dot_value;

namespace detail {

template <class X>
constexpr auto find_device_pointer_mistake() {
  if constexpr (!expression<X>) return not_operands{};
  else if constexpr (!is_cuda_v<device_of<X>>)
    return mistake<no_gpu_memory_behind_tensors_on<device_of<X>>, use_dot_data_there_or_copy_with_dot_to>{};
  else if constexpr (is_variable<X>) return mistake<no_device_pointer_of_a_variable, take_the_pointer_of_dot_value>{};
  else if constexpr (!is_tensor<X>)
    return mistake<expression_not_yet_evaluated_on<device_of<X>>, assign_it_to_a_tensor_first>{};
  else return fitting<element_of<X>>{};
}
template <class X>
using device_pointer_mistake = decltype(find_device_pointer_mistake<bare<X>>());

}  // namespace detail

/// The stream on which all of D's work runs, in order. What is enqueued there runs after the statements before it and
/// before those after it, and the host does not wait; a kernel is launched with native_device<D>() as the current
/// device. The stream is D's: it is not to be destroyed.
///
/// While a step on D is captured, work that is put there, by whichever thread, becomes part of the step and runs with
/// each replay(); to wait for the stream then is an error of CUDA's, which ends the capture. launches<D>() does not
/// count what Sinter did not launch, and an error that a launch leaves in cudaGetLastError() is left there.
///
/// Errors: device_error where D is not available.
///
///     const tensor y = empty_like(x);
///     my_kernel<<<blocks, 256, 0, native_stream<cuda<0>>()>>>(device_pointer(x), device_pointer(y), x.numel());
///     const tensor z = y * 2;  // reads what the kernel writes
template <device D>
  requires is_cuda_v<D>
cudaStream_t native_stream() {
  return cuda_impl::context_of<D>().stream();
}

/// CUDA's number of the GPU that D is: that of cuda<I> is I unless SINTER_CUDA_MAP says otherwise. Sinter leaves the
/// current device of a thread as it finds it. Errors: device_error where D is not available.
///
///     cudaSetDevice(native_device<cuda<1>>());
template <device D>
  requires is_cuda_v<D>
int native_device() {
  return cuda_impl::context_of<D>().gpu();
}

/// Where the first element of x lies in the memory of its GPU; the others follow by x.strides(), without gaps where
/// x.is_contiguous(). Valid for work put on native_stream of that GPU while a handle on x's storage lives: memory that
/// is freed goes to whoever asks next, whose work comes later on the stream.
///
/// A write through the pointer is not seen by the tape, as one through data() on the host: where backward has saved x,
/// it computes with what is there then, and says nothing.
///
/// Errors: shape_error for a tensor without a value. Tensors of the host, variables and expressions do not compile.
///
///     cudaMemsetAsync(device_pointer(x), 0, x.numel() * sizeof(float), native_stream<cuda<0>>());
template <class T, auto Shape, device D>
  requires is_cuda_v<D>
T* device_pointer(const tensor<T, Shape, D>& x) {
  if (!x.defined()) detail::refuse_undefined("device_pointer");
  return detail::access::data(x);
}
#if !SINTER_WITH_CUDNN
struct native_cudnn_needs_cudnn;
struct compile_with_SINTER_WITH_CUDNN_1_and_link_cudnn;
template <class D, class Problem = native_cudnn_needs_cudnn,
          class Fix = compile_with_SINTER_WITH_CUDNN_1_and_link_cudnn>
void native_cudnn() = delete;
#endif
#if !SINTER_WITH_NCCL
struct all_reduce_needs_nccl;
struct compile_with_SINTER_WITH_NCCL_1_and_link_nccl;
template <class... X, class Problem = all_reduce_needs_nccl, class Fix = compile_with_SINTER_WITH_NCCL_1_and_link_nccl>
void all_reduce(const X&...) = delete;
#endif

template <class X, class Problem = typename detail::device_pointer_mistake<X>::problem,
          class Fix = typename detail::device_pointer_mistake<X>::fix>
void device_pointer(const X&) = delete;

}  // namespace sinter
