// sinter/ranks/hierarchical/communicator.hpp: ranks on nodes with fast links, and slower ones between nodes.
#pragma once

#include <concepts>
#include <memory>
#include <utility>

#include "sinter/ranks/hierarchical/transport.hpp"
#include "sinter/ranks/host_communicator.hpp"

namespace sinter {

// Names in messages.
template <class C>
struct hierarchy_of_what_is_no_host_communicator;
struct pass_communicators_of_threads_sockets_or_mpi;

namespace detail {

/// Communicators that a hierarchical_communicator is made of.
template <class C>
concept has_transport = std::derived_from<C, host_communicator<C>> && !std::same_as<C, hierarchical_communicator>;

}  // namespace detail

/// Ranks on several nodes, of which links inside are fast and links between are slow. all_reduce adds inside each node,
/// then between the first ranks of the nodes, and spreads the sum inside; broadcast goes the same way. So a node sends
/// and receives a tensor once, not once for each rank. Other calls go over all ranks. Nodes may have different numbers
/// of ranks. See the concept `communicator`.
///
///     socket_communicator world(socket_options::from_environment());
///     hierarchical_communicator ranks(world, 8);  // ranks 0 to 7 are on one machine, 8 to 15 on the next
///     nn::distributed train(model, ranks);
///
/// The sum is the same bit by bit on all ranks and, over threads and sockets, each time. It is not that of a flat
/// communicator: half and bfloat16 are rounded once more for each step. Where one rank fails, all do, as with any
/// communicator; peer() is the rank among all.
///
/// It takes nothing from the communicators that it is made of: they stay as they were. Calls run on a thread of its
/// own, which communicators made by split() share, so each rank makes the calls of both in one order; over MPI it is
/// MPI's thread.
class hierarchical_communicator : public detail::host_communicator<hierarchical_communicator> {
 public:
  /// `node` has the ranks of this rank's node, `world` has all ranks; they may be of different kinds. All ranks call
  /// it. Errors, on all ranks: value_error where the nodes do not have each rank once; communication_error.
  template <detail::has_transport Inner, detail::has_transport Outer>
  hierarchical_communicator(Inner node, Outer world)
      : hierarchical_communicator(node.split_off(0, node.rank()), world.split_off(0, world.rank()),
                                  world.state_->limits(), thread_for(node, world)) {}
  /// Nodes of `ranks_per_node` ranks one after the other; the last one may have fewer. Errors: value_error for a
  /// number below 1; communication_error.
  template <detail::has_transport C>
  hierarchical_communicator(C world, int ranks_per_node)
      : hierarchical_communicator(world.split_off(node_of(world.rank(), ranks_per_node), world.rank()),
                                  world.split_off(0, world.rank()), world.state_->limits(), thread_for(world, world)) {}
  template <class C, class X, class Problem = hierarchy_of_what_is_no_host_communicator<C>,
            class Fix = pass_communicators_of_threads_sockets_or_mpi>
    requires(!detail::has_transport<C>)
  hierarchical_communicator(const C&, const X&) = delete;

 private:
  using base = detail::host_communicator<hierarchical_communicator>;
  friend base;
  using base::base;

  hierarchical_communicator(std::unique_ptr<detail::transport> node, std::unique_ptr<detail::transport> world,
                            detail::communication_limits limits, std::shared_ptr<detail::communication_thread> thread)
      : base(made_of(std::move(node), std::move(world), limits, *thread), limits, thread) {}

  static int node_of(int rank, int ranks_per_node) {
    if (ranks_per_node < 1)
      detail::refuse<value_error>({"hierarchical_communicator: ", ranks_per_node, " ranks per node; give at least 1"});
    return rank / ranks_per_node;
  }
  template <class Inner, class Outer>
  static std::shared_ptr<detail::communication_thread> thread_for(const Inner& node, const Outer& world) {
    if (auto thread = node.shared_thread()) return thread;
    if (auto thread = world.shared_thread()) return thread;
    return std::make_shared<detail::communication_thread>();
  }
  static std::shared_ptr<detail::communication_thread> thread_of_split(
      const std::shared_ptr<detail::communication_thread>& thread) {
    return thread;
  }
  static std::unique_ptr<detail::transport> made_of(std::unique_ptr<detail::transport> node,
                                                    std::unique_ptr<detail::transport> world,
                                                    const detail::communication_limits& limits,
                                                    detail::communication_thread& thread) {
    const int rank = world->rank(), size = world->size();
    struct parts {
      std::unique_ptr<detail::transport> node, world, made;
      detail::deadline until;
    };
    const auto p = std::make_shared<parts>();
    p->node = std::move(node);
    p->world = std::move(world);
    p->until.set(detail::after(detail::communication_clock::now(), limits.timeout));
    try {
      thread.call_last([p] {
        p->made = std::make_unique<detail::hierarchical_transport>(std::move(p->node), std::move(p->world), p->until);
      });
    } catch (const detail::trouble& t) {
      throw communication_error(
          detail::joined({"communicator (hierarchical), rank ", rank, " of ", size, ": beginning: ", t.text}).c_str(),
          t.kind, rank, t.peer, 0, {});
    }
    return std::move(p->made);
  }
};

static_assert(communicator_on<hierarchical_communicator, cpu> && communicator_on<hierarchical_communicator, numa<0>>);

}  // namespace sinter
