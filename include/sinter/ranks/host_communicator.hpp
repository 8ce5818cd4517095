// sinter/ranks/host_communicator.hpp: the calls of communicators that reach the host's memory.
#pragma once

#include "sinter/core/unfinished.hpp"
#include "sinter/ranks/communication.hpp"

namespace sinter {

class hierarchical_communicator;

namespace detail {

/// What thread_communicator, socket_communicator and mpi_communicator (Self) share; see the concept `communicator`.
template <class Self>
class host_communicator {
  template <class X, bool Adds = false>
  using mistake_of = communication_mistake<Self, X, Adds>;

 public:
  /// True for `cpu` and every `numa<I>`.
  template <class D>
  static constexpr bool reaches = is_cpu_v<D>;

  int rank() const { return state_->over().rank(); }
  int size() const { return state_->over().size(); }
  std::string name() const { return state_->over().name(); }
  /// What the calls of this rank have taken so far.
  communication_time time_spent() const { return state_->time_spent(); }

  /// The sum, or maximum, of `values` over all ranks, in the memory of `values`: in the order of the ranks, half and
  /// bfloat16 in float. float, double, half, bfloat16, int32 and int64; (n) on each => (n). Errors: shape_error for a
  /// tensor without a value or whose elements are not side by side; communication_error.
  template <element T, device D>
    requires(is_cpu_v<D> && can_be_summed<T>)
  work<tensor<T, 1, D>> all_reduce(tensor<T, 1, D> values, rank_reduction by = reduction::sum,
                                   std::string_view name = {}) {
    require_flat("all_reduce", values);
    note_write(*access::storage_of(values).get());
    auto c = make_call<T>(operation::all_reduce, values, 0, by.is_max(), name);
    c->run = [p = bytes_of(values)](transport& over, const call& one) {
      over.all_reduce(one.header, p, one.on->until);
    };
    return {state_->post(c), values};
  }
  template <class X, class... More, class Problem = typename mistake_of<X, true>::problem,
            class Fix = typename mistake_of<X, true>::fix>
  void all_reduce(const X&, More&&...) = delete;

  /// `values` of rank `root`, in the memory of each rank's `values`; (n) on each => (n), of any element type.
  template <element T, device D>
    requires(is_cpu_v<D>)
  work<tensor<T, 1, D>> broadcast(tensor<T, 1, D> values, int root, std::string_view name = {}) {
    require_flat("broadcast", values);
    require_rank("broadcast", root, size());
    note_write(*access::storage_of(values).get());
    auto c = make_call<T>(operation::broadcast, values, root, false, name);
    c->run = [p = bytes_of(values)](transport& over, const call& one) { over.broadcast(one.header, p, one.on->until); };
    return {state_->post(c), values};
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void broadcast(const X&, More&&...) = delete;

  /// (n) on each => (size() n): the values of rank 0, 1, ...; of any element type.
  template <element T, device D>
    requires(is_cpu_v<D>)
  work<tensor<T, 1, D>> all_gather(tensor<T, 1, D> mine, std::string_view name = {}) {
    require_flat("all_gather", mine);
    auto all = tensor<T, 1, D>::uninitialized({{mine.numel() * size()}});
    auto c = make_call<T>(operation::all_gather, mine, 0, false, name);
    c->memory = std::make_shared<std::pair<tensor<T, 1, D>, tensor<T, 1, D>>>(mine, all);
    c->run = [from = bytes_of(mine), to = bytes_of(all)](transport& over, const call& one) {
      over.all_gather(one.header, from, to, one.on->until);
    };
    return {state_->post(c), all};
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void all_gather(const X&, More&&...) = delete;

  /// (size() n) on each => (n): part rank() of the sum, as all_reduce adds. Errors: shape_error for a length that
  /// size() does not divide.
  template <element T, device D>
    requires(is_cpu_v<D> && can_be_summed<T>)
  work<tensor<T, 1, D>> reduce_scatter(tensor<T, 1, D> values, std::string_view name = {}) {
    require_flat("reduce_scatter", values);
    require_equal_parts("reduce_scatter", values.numel(), size());
    auto mine = tensor<T, 1, D>::uninitialized({{values.numel() / size()}});
    auto c = make_call<T>(operation::reduce_scatter, values, 0, false, name);
    c->memory = std::make_shared<std::pair<tensor<T, 1, D>, tensor<T, 1, D>>>(values, mine);
    c->run = [from = bytes_of(values), to = bytes_of(mine)](transport& over, const call& one) {
      over.reduce_scatter(one.header, from, to, one.on->until);
    };
    return {state_->post(c), mine};
  }
  template <class X, class... More, class Problem = typename mistake_of<X, true>::problem,
            class Fix = typename mistake_of<X, true>::fix>
  void reduce_scatter(const X&, More&&...) = delete;

  /// Sends `values` to rank `to`, which receives it. What one rank sends to another is received in that order, with the
  /// same tags. It starts once the collectives that this rank called before are over; those that it calls later do not
  /// wait for it.
  template <element T, device D>
    requires(is_cpu_v<D>)
  work<void> send(tensor<T, 1, D> values, int to, int tag = 0) {
    require_flat("send", values);
    require_rank("send", to, size());
    return work<void>(state_->post(make_message<T>(operation::send, values, to, tag)));
  }
  template <class X, class... More, class Problem = typename mistake_of<X>::problem,
            class Fix = typename mistake_of<X>::fix>
  void send(const X&, More&&...) = delete;

  /// The next n elements that rank `from` sends to this one.
  template <element T, device D = cpu>
    requires(is_cpu_v<D>)
  work<tensor<T, 1, D>> receive(index_t n, int from, int tag = 0) {
    require_rank("receive", from, size());
    const auto values = tensor<T, 1, D>::uninitialized({{n}});
    return {state_->post(make_message<T>(operation::receive, values, from, tag)), values};
  }
  template <element T, device D, class Problem = communicator_does_not_reach<D>,
            class Fix = copy_it_with_dot_to_a_device_that_it_reaches>
    requires(!is_cpu_v<D>)
  work<tensor<T, 1, D>> receive(index_t, int, int = 0) = delete;

  /// Is over once all ranks called it.
  work<void> barrier(std::string_view name = {}) {
    auto c = std::make_shared<call>();
    c->header = make_header(operation::barrier, element_kind::uint8, 0, 0, false, name);
    c->name = name;
    return work<void>(state_->post(c));
  }

  /// All ranks call it; those with the same color get a communicator of their own, in which they are in the order of
  /// (key, rank). Errors: value_error for a negative color.
  Self split(int color, int key) {
    return Self(split_off(color, key), state_->limits(), Self::thread_of_split(state_->thread()));
  }

  /// This rank gives up: the calls of all ranks throw "aborted by rank r: reason", those that wait already, too.
  /// Returns once the other ranks are told, or after two seconds where they do not listen.
  void abort(std::string reason) { state_->abort(reason); }

 protected:
  host_communicator(std::unique_ptr<transport> over, communication_limits limits,
                    std::shared_ptr<communication_thread> thread)
      : state_(std::make_shared<communication>(std::move(over), limits, std::move(thread))) {}
  /// A communicator made by split() has a thread of its own.
  static std::shared_ptr<communication_thread> thread_of_split(const std::shared_ptr<communication_thread>&) {
    return std::make_shared<communication_thread>();
  }

 private:
  friend class sinter::hierarchical_communicator;

  std::unique_ptr<transport> split_off(int color, int key) {
    require_color(color);
    auto made = std::make_shared<std::unique_ptr<transport>>();
    auto c = std::make_shared<call>();
    c->header = make_header(operation::split, element_kind::int32, 0, 0, false, {});
    c->run = [made, color, key](transport& over, const call& one) {
      *made = over.split(one.header, color, key, one.on->until);
    };
    state_->post(c)->wait(std::nullopt);
    return std::move(*made);
  }
  /// Where the calls of a communicator of several transports run: transports of MPI work on one thread only.
  std::shared_ptr<communication_thread> shared_thread() const {
    auto own = Self::thread_of_split(state_->thread());
    return own == state_->thread() ? own : nullptr;
  }

  template <class T, class D>
  static std::byte* bytes_of(const tensor<T, 1, D>& x) {
    return reinterpret_cast<std::byte*>(x.data());
  }
  template <class T, class D>
  static std::shared_ptr<call> make_call(operation op, const tensor<T, 1, D>& x, int root, bool is_max,
                                         std::string_view name) {
    auto c = std::make_shared<call>();
    c->header = make_header(op, kind_of_element<T>(), static_cast<std::size_t>(x.numel()), root, is_max, name);
    c->name = name;
    c->memory = std::make_shared<tensor<T, 1, D>>(x);
    return c;
  }
  template <class T, class D>
  static std::shared_ptr<call> make_message(operation op, const tensor<T, 1, D>& x, int peer, int tag) {
    auto c = make_call<T>(op, x, tag, false, {});
    c->moves.peer = peer;
    c->moves.outgoing = op == operation::send;
    c->moves.data = bytes_of(x);
    c->moves.bytes = static_cast<std::size_t>(x.numel()) * sizeof(T);
    return c;
  }

  std::shared_ptr<communication> state_;
};

}  // namespace detail
}  // namespace sinter
