// sinter/cuda/nccl.hpp: sums over tensors on several GPUs of this process, by NCCL.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_NCCL
#error "sinter: sinter/cuda/nccl.hpp needs NCCL: compile with -DSINTER_WITH_NCCL=1 and link with -lnccl"
#endif

#include <nccl.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/context.hpp"
#include "sinter/cuda/gpu.hpp"
#include "sinter/expr/evaluate.hpp"

namespace sinter {

template <class...>
struct all_reduce_of_host_memory_of;
template <class>
struct all_reduce_cannot_add_elements_of;
template <class...>
struct all_reduce_of_mixed_element_types;
template <int...>
struct all_reduce_of_ranks;
template <class...>
struct a_device_is_listed_twice_in;
struct assign_it_to_a_tensor_first;
struct copy_it_to_a_gpu_with_dot_to;
struct convert_it_with_cast;
struct give_tensors_of_one_element_type;
struct give_tensors_of_one_rank;
struct give_one_tensor_per_device;

namespace cuda_impl {

template <class T>
inline constexpr ncclDataType_t nccl_element = ncclNumTypes;  // has none
template <>
inline constexpr ncclDataType_t nccl_element<float> = ncclFloat32;
template <>
inline constexpr ncclDataType_t nccl_element<double> = ncclFloat64;
template <>
inline constexpr ncclDataType_t nccl_element<half> = ncclFloat16;
template <>
inline constexpr ncclDataType_t nccl_element<bfloat16> = ncclBfloat16;
template <>
inline constexpr ncclDataType_t nccl_element<std::int8_t> = ncclInt8;
template <>
inline constexpr ncclDataType_t nccl_element<std::uint8_t> = ncclUint8;
template <>
inline constexpr ncclDataType_t nccl_element<std::int32_t> = ncclInt32;
template <>
inline constexpr ncclDataType_t nccl_element<std::int64_t> = ncclInt64;

inline void check(ncclResult_t status, const std::string& what, [[maybe_unused]] ncclComm_t among = nullptr) {
  if (status == ncclSuccess) return;
  static_cast<void>(cudaGetLastError());
  std::string text = what + ": " + ncclGetErrorString(status);
#if NCCL_VERSION_CODE >= 21300
  if (const char* const more = ncclGetLastError(among); more != nullptr && *more != '\0')
    text += std::string(" (") + more + ")";
#endif
  throw device_error(text);
}

/// A device's part of a sum: dense elements, which become the sum.
struct reduced {
  context* on;
  void* data;
};

/// Errors: device_error, before anything is started, where NCCL cannot or must not be called.
inline void check_group(const std::vector<context*>& group) {
  sinter::detail::refuse_capture("all_reduce", "a graph holds the work of one device; add up after replay()");
  for (std::size_t i = 0; i < group.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (group[i]->gpu() == group[j]->gpu())
        sinter::detail::refuse<device_error>(
            {"all_reduce: ", group[j]->name(), " and ", group[i]->name(), " are both GPU ", group[i]->gpu(),
             ", which NCCL takes once; give each a GPU in SINTER_CUDA_MAP, or copy with .to() and add"});
}
/// So that no device begins a capture before the sum is on its way.
inline std::vector<capture_state::hold> hold(std::vector<context*> group) {
  std::sort(group.begin(), group.end());  // as copies between devices do
  std::vector<capture_state::hold> held;
  for (const context* c : group) held.push_back(c->capture().enter("all_reduce"));
  return held;
}

/// One call at a time, so that all streams get the calls in the same order. The communicators of a list of GPUs are
/// kept.
inline void add_up(std::vector<reduced> parts, std::size_t count, ncclDataType_t type, std::string what) {
  static std::mutex& busy = *new std::mutex;
  static auto& made = *new std::map<std::vector<int>, std::vector<ncclComm_t>>;
  std::sort(parts.begin(), parts.end(), [](const reduced& a, const reduced& b) { return a.on->gpu() < b.on->gpu(); });
  std::vector<int> gpus;
  std::vector<context*> group;
  for (const reduced& p : parts) {
    what += (gpus.empty() ? " on " : ", ") + p.on->name();
    gpus.push_back(p.on->gpu());
    group.push_back(p.on);
  }
  const std::lock_guard lock(busy);
  const auto held = hold(group);
  std::vector<ncclComm_t>& among = made[gpus];
  if (among.empty()) {
    std::vector<ncclComm_t> fresh(gpus.size());
    check(ncclCommInitAll(fresh.data(), static_cast<int>(gpus.size()), gpus.data()), what + ": starting NCCL");
    among = std::move(fresh);
  }
  check(ncclGroupStart(), what);
  ncclResult_t status = ncclSuccess;
  std::size_t i = 0;
  for (; i < parts.size() && status == ncclSuccess; ++i)
    status = ncclAllReduce(parts[i].data, parts[i].data, count, type, ncclSum, among[i], parts[i].on->stream());
  const ncclResult_t ended = ncclGroupEnd();
  check(status, what, among[i - 1]);
  check(ended, what);
  for (const reduced& p : parts) p.on->count_launches();
}

}  // namespace cuda_impl

namespace detail {

template <class First, class... Rest>
constexpr auto find_all_reduce_mistake() {
  if constexpr (!(expression<First> && ... && expression<Rest>)) return not_operands{};
  else if constexpr (!(is_cuda_v<device_of<First>> && ... && is_cuda_v<device_of<Rest>>))
    return mistake<all_reduce_of_host_memory_of<device_of<First>, device_of<Rest>...>, copy_it_to_a_gpu_with_dot_to>{};
  else if constexpr ((is_variable<First> || ... || is_variable<Rest>))
    return mistake<updating_a_tracked_variable_in_place, write_through_dot_value_instead>{};
  else if constexpr (!(is_tensor<First> && ... && is_tensor<Rest>))
    return mistake<expression_not_yet_evaluated_on<device_of<First>>, assign_it_to_a_tensor_first>{};
  else if constexpr (!(std::is_same_v<element_of<First>, element_of<Rest>> && ...))
    return mistake<all_reduce_of_mixed_element_types<element_of<First>, element_of<Rest>...>,
                   give_tensors_of_one_element_type>{};
  else if constexpr (cuda_impl::nccl_element<element_of<First>> == ncclNumTypes)
    return mistake<all_reduce_cannot_add_elements_of<element_of<First>>, convert_it_with_cast>{};
  else if constexpr (!((rank_of<First> == rank_of<Rest>) && ...))
    return mistake<all_reduce_of_ranks<rank_of<First>, rank_of<Rest>...>, give_tensors_of_one_rank>{};
  else if constexpr (((times_listed<device_of<First>, device_of<First>, device_of<Rest>...> + ... +
                       times_listed<device_of<Rest>, device_of<First>, device_of<Rest>...>)) != 1 + sizeof...(Rest))
    return mistake<a_device_is_listed_twice_in<device_of<First>, device_of<Rest>...>, give_one_tensor_per_device>{};
  else return fitting<element_of<First>>{};
}
template <class... X>
using all_reduce_mistake = decltype(find_all_reduce_mistake<bare<X>...>());

/// Once x's sum is in `sum`, the memory of x itself where that is dense.
template <class X>
void take_sum(const X& x, const X& sum) {
  if (x.is_contiguous()) {
    note_write(*access::storage_of(x).get());
  } else {
    auto target = x;
    std::move(target) = sum;
  }
}

template <class First, class... Rest>
void sum_of_several(const First& first, const Rest&... rest) {
  const auto same_shape = [&](const auto& other) {
    if (!(other.shape() == first.shape()))
      refuse<shape_error>({"all_reduce: shape ", first.shape(), " on ", device_name<device_of<First>>(), " and ",
                           other.shape(), " on ", device_name<device_of<decltype(other)>>(),
                           "; all must be of one shape"});
  };
  (same_shape(rest), ...);
  const std::vector<cuda_impl::context*> group{&cuda_impl::context_of<device_of<First>>(),
                                               &cuda_impl::context_of<device_of<Rest>>()...};
  cuda_impl::check_group(group);
  if (first.numel() == 0) return;
  const auto add_up = [&](const First& dense, const Rest&... others) {
    cuda_impl::add_up(
        {{group[0], access::data(dense)}, {&cuda_impl::context_of<device_of<Rest>>(), access::data(others)}...},
        static_cast<std::size_t>(first.numel()), cuda_impl::nccl_element<element_of<First>>,
        joined({"all_reduce of shape ", first.shape()}));
    take_sum(first, dense);
    (take_sum(rest, others), ...);
  };
  add_up(first.contiguous(), rest.contiguous()...);
}

}  // namespace detail

/// x0, x1, ... on GPUs of this process each become the sum of all, as by torch.cuda.nccl.all_reduce: for gradients of
/// models that saw a part of the batch each. NCCL adds on all GPUs at once, each on its native_stream, in order with
/// the device's other work; the host does not wait. Elements: float, double, half, bfloat16, int8, uint8, int32, int64.
/// (shape) x ... x (shape) => the same shapes. Views are written through; where the elements of one are not side by
/// side, it is copied, and copied back. It is a write in place: the tape notices it, and has no derivative for it. NCCL
/// fixes the order of the sum, which may differ for other GPUs or sizes. Calls from several threads take turns. One
/// tensor alone is its own sum: nothing happens.
///
/// Errors: shape_error for shapes that differ, a tensor without a value and a broadcast view; device_error for two
/// devices on one GPU (SINTER_CUDA_MAP), for a GPU that is not there and while a step is captured: nothing has been
/// started then. device_error with NCCL's words where NCCL fails; the tensors are undefined then. Tensors of the host,
/// of several element types or ranks, of bool and int16, two on one device, variables and expressions do not compile.
///
///     loss0.backward();  // of a model on cuda<0> and one half of a batch
///     loss1.backward();  // of its copy on cuda<1> and the other half
///     all_reduce(w0.grad(), w1.grad());
template <expression... X>
  requires(sizeof...(X) > 0 && detail::is_fitting<detail::all_reduce_mistake<X...>>)
void all_reduce(const X&... x) {
  (detail::check_assignable("all_reduce", x, x), ...);
  if constexpr (sizeof...(X) > 1) detail::sum_of_several(x...);
}
template <class... X, class Problem = typename detail::all_reduce_mistake<X...>::problem,
          class Fix = typename detail::all_reduce_mistake<X...>::fix>
void all_reduce(const X&...) = delete;

}  // namespace sinter
