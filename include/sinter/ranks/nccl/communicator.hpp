// sinter/ranks/nccl/communicator.hpp: ranks with a GPU each, over NCCL.
#pragma once

#include "sinter/config.hpp"

#if !SINTER_WITH_NCCL
#error "sinter: sinter/ranks/nccl/communicator.hpp needs NCCL: compile with -DSINTER_WITH_NCCL=1 and link with -lnccl"
#endif

#include "sinter/core/unfinished.hpp"
#include "sinter/cuda/backend.hpp"
#include "sinter/ops/max.hpp"
#include "sinter/ranks/communicator.hpp"
#include "sinter/ranks/nccl/group.hpp"

namespace sinter {

/// Ranks with one GPU each, which is D = cuda<I> on this one: processes of one machine or several, or threads. Calls
/// work on tensors on D. It is made by all ranks of `world`, a communicator of the host, at the same time; see the
/// concept `communicator`.
///
///     socket_communicator world(socket_options::from_environment());  // SINTER_CUDA_MAP=<number> names the rank's GPU
///     nccl_communicator<cuda<0>> gpus(world);
///     tensor sum = gpus.all_reduce(gradients).get();
///     nn::distributed ranks(model, world, gpus);  // of a model on cuda<0>, and the cpu
///
/// A call runs on a stream of the communicator, once what was put on the stream of D before it is over; what is put on
/// the stream of D after it runs beside it. get() waits on the host: then all ranks have made the call, and its work on
/// this GPU is over. NCCL fixes the order of a sum, which may differ for other ranks or lengths, and rounds half and
/// bfloat16 after each addition.
///
/// Each call is accompanied by one over a part of `world` that split() makes: a barrier, or a message. So errors name
/// the rank that is missing, has ended, or makes another call, as those of `world` do. When a rank fails, or the time
/// is over, it stops NCCL with ncclCommAbort and tells the others; memory that NCCL may still write to is never freed.
/// The destructor waits until all ranks come to it, unless the communicator has failed.
///
/// Calls come in the same order on all ranks, messages among them. Those that no collective separates are started
/// together, by the next collective or by who asks for one, so two ranks may both send first. A call may wait for the
/// other ranks until NCCL has taken its work, as the first one does, and while a step on D is captured it is refused.
template <device D>
  requires is_cuda_v<D>
class nccl_communicator {
  template <class X, bool Adds = false>
  using mistake_of = detail::communication_mistake<nccl_communicator, X, Adds>;
  template <class T>
  using flat = tensor<T, 1, D>;

 public:
  /// True for D alone.
  template <class Other>
  static constexpr bool reaches = std::is_same_v<Other, D>;

  /// Errors: device_error where D is not available; value_error for wrong options; communication_error, as where two
  /// ranks have the same GPU.
  template <class C>
    requires(!std::is_same_v<C, nccl_communicator> && communicator_on<C, cpu>)
  explicit nccl_communicator(const C& world, const nccl_options& options = {})
      : nccl_communicator(std::make_shared<detail::nccl_group>(
            []() -> cuda_impl::context& { return cuda_impl::context_of<D>(); }, part_of(world), options)) {}

  int rank() const { return group_->rank(); }
  int size() const { return group_->size(); }
  std::string name() const { return "nccl"; }

  /// As of the concept. The maximum of floating-point elements, which gives NaN where an element is NaN, takes memory
  /// for the elements of all ranks. Errors: shape_error for a tensor without a value or whose elements are not side by
  /// side; device_error during a capture; communication_error.
  template <element T>
    requires detail::can_be_summed<T>
  work<flat<T>> all_reduce(flat<T> values, rank_reduction by = reduction::sum, std::string_view name = {}) {
    detail::require_flat("all_reduce", values);
    detail::note_write(*detail::access::storage_of(values).get());
    auto c = make_call<T>(detail::operation::all_reduce, values, 0, by.is_max(), name);
    T* const p = pointer(values);
    const std::size_t n = length(values);
    constexpr ncclDataType_t type = cuda_impl::nccl_element<T>;
    if (floating_element<T> && by.is_max()) {  // ncclMax leaves NaN out
      const auto all = flat<T>::uninitialized({{values.numel() * size()}});
      c->memory = std::make_shared<std::pair<flat<T>, flat<T>>>(values, all);
      c->run = [=, to = pointer(all)](ncclComm_t ranks, cudaStream_t on) {
        return ncclAllGather(p, to, n, type, ranks, on);
      };
      c->finish = [values, all, rows = size()]() mutable {
        values.in_place() = max(all.reshape({rows, values.numel()}), 0);
      };
    } else {
      c->run = [=, op = by.is_max() ? ncclMax : ncclSum](ncclComm_t ranks, cudaStream_t on) {
        return ncclAllReduce(p, p, n, type, op, ranks, on);
      };
    }
    return post(c, values);
  }
  template <class X, class... More, class Problem = typename mistake_of<X, true>::problem,
            class Fix = typename mistake_of<X, true>::fix>
  void all_reduce(const X&, More&&...) = delete;

  /// As of the concept, of any element type.
  template <element T>
  work<flat<T>> broadcast(flat<T> values, int root, std::string_view name = {}) {
    detail::require_flat("broadcast", values);
    detail::require_rank("broadcast", root, size());
    detail::note_write(*detail::access::storage_of(values).get());
    auto c = make_call<T>(detail::operation::broadcast, values, root, false, name);
    c->run = [p = pointer(values), bytes = bytes_of(values), root](ncclComm_t ranks, cudaStream_t on) {
      return ncclBroadcast(p, p, bytes, ncclUint8, root, ranks, on);
    };
    return post(c, values);
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void broadcast(const X&, More&&...) = delete;

  /// As of the concept, of any element type.
  template <element T>
  work<flat<T>> all_gather(flat<T> mine, std::string_view name = {}) {
    detail::require_flat("all_gather", mine);
    const auto all = flat<T>::uninitialized({{mine.numel() * size()}});
    auto c = make_call<T>(detail::operation::all_gather, mine, 0, false, name);
    c->memory = std::make_shared<std::pair<flat<T>, flat<T>>>(mine, all);
    c->run = [from = pointer(mine), to = pointer(all), bytes = bytes_of(mine)](ncclComm_t ranks, cudaStream_t on) {
      return ncclAllGather(from, to, bytes, ncclUint8, ranks, on);
    };
    return post(c, all);
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void all_gather(const X&, More&&...) = delete;

  /// As of the concept. Errors: shape_error for a length that size() does not divide.
  template <element T>
    requires detail::can_be_summed<T>
  work<flat<T>> reduce_scatter(flat<T> values, std::string_view name = {}) {
    detail::require_flat("reduce_scatter", values);
    detail::require_equal_parts("reduce_scatter", values.numel(), size());
    const auto mine = flat<T>::uninitialized({{values.numel() / size()}});
    auto c = make_call<T>(detail::operation::reduce_scatter, values, 0, false, name);
    c->memory = std::make_shared<std::pair<flat<T>, flat<T>>>(values, mine);
    c->run = [from = pointer(values), to = pointer(mine), n = length(mine)](ncclComm_t ranks, cudaStream_t on) {
      return ncclReduceScatter(from, to, n, cuda_impl::nccl_element<T>, ncclSum, ranks, on);
    };
    return post(c, mine);
  }
  template <class X, class... More, class Problem = typename mistake_of<X, true>::problem,
            class Fix = typename mistake_of<X, true>::fix>
  void reduce_scatter(const X&, More&&...) = delete;

  /// Sends `values` to rank `to`, which receives them with the same tag. See above for the order.
  template <element T>
  work<void> send(flat<T> values, int to, int tag = 0) {
    detail::require_flat("send", values);
    detail::require_rank("send", to, size());
    auto c = make_call<T>(detail::operation::send, values, tag, false, {});
    if (values.numel() > 0)
      c->run = [p = pointer(values), bytes = bytes_of(values), to](ncclComm_t ranks, cudaStream_t on) {
        return ncclSend(p, bytes, ncclUint8, to, ranks, on);
      };
    return work<void>(group_->post_message(c, to));
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void send(const X&, More&&...) = delete;

  /// The next n elements that rank `from` sends to this one.
  template <element T, device Place = D>
    requires std::is_same_v<Place, D>
  work<flat<T>> receive(index_t n, int from, int tag = 0) {
    detail::require_rank("receive", from, size());
    const auto values = flat<T>::uninitialized({{n}});
    auto c = make_call<T>(detail::operation::receive, values, tag, false, {});
    if (n > 0)
      c->run = [p = pointer(values), bytes = bytes_of(values), from](ncclComm_t ranks, cudaStream_t on) {
        return ncclRecv(p, bytes, ncclUint8, from, ranks, on);
      };
    return {group_->post_message(c, from), values};
  }
  template <element T, device Place, class Problem = communicator_does_not_reach<Place>,
            class Fix = copy_it_with_dot_to_a_device_that_it_reaches>
    requires(!std::is_same_v<Place, D>)
  work<tensor<T, 1, Place>> receive(index_t, int, int = 0) = delete;

  /// Is over once all ranks called it; it does not look at work on GPUs.
  work<void> barrier(std::string_view name = {}) {
    auto c = std::make_shared<detail::nccl_call>(group_);
    c->header = detail::make_header(detail::operation::barrier, element_kind::uint8, 0, 0, false, name);
    c->name = name;
    return work<void>(group_->post(c));
  }

  /// All ranks call it; those with the same color get a communicator of their own, in which they are in the order of
  /// (key, rank). Errors: value_error for a negative color.
  nccl_communicator split(int color, int key) {
    detail::require_color(color);
    return nccl_communicator(group_->split(color, key));
  }

  /// This rank gives up, and stops its GPU's part: the calls of all ranks throw "aborted by rank r: reason".
  void abort(std::string reason) { group_->abort(reason); }

 private:
  explicit nccl_communicator(std::shared_ptr<detail::nccl_group> group) : group_(std::move(group)) {}

  template <class C>
  static std::unique_ptr<detail::host_ranks> part_of(C world) {
    return std::make_unique<detail::host_ranks_of<C>>(world.split(0, world.rank()));
  }
  template <class T>
  static T* pointer(const flat<T>& x) {
    return detail::access::data(x);
  }
  template <class T>
  static std::size_t length(const flat<T>& x) {
    return static_cast<std::size_t>(x.numel());
  }
  template <class T>
  static std::size_t bytes_of(const flat<T>& x) {
    return length(x) * sizeof(T);
  }
  template <class T>
  std::shared_ptr<detail::nccl_call> make_call(detail::operation op, const flat<T>& x, int root, bool is_max,
                                               std::string_view name) const {
    auto c = std::make_shared<detail::nccl_call>(group_);
    c->header = detail::make_header(op, kind_of_element<T>(), length(x), root, is_max, name);
    c->name = name;
    c->memory = std::make_shared<flat<T>>(x);
    return c;
  }
  /// Nothing is asked of NCCL for a tensor without elements.
  template <class T>
  work<flat<T>> post(const std::shared_ptr<detail::nccl_call>& c, const flat<T>& result) {
    if (c->header.count == 0) c->run = nullptr, c->finish = nullptr;
    return {group_->post(c), result};
  }

  std::shared_ptr<detail::nccl_group> group_;
};

}  // namespace sinter
