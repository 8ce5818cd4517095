// sinter/ranks/hierarchical/transport.hpp: collectives in steps: inside each node, between nodes, and inside again.
#pragma once

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sinter/ranks/transport.hpp"

namespace sinter::detail {

/// Made of transports of the ranks of this node, of the first ranks of all nodes, the leaders, and of all ranks.
class hierarchical_transport final : public transport {
  struct place {
    std::int32_t leader, local, node_size;
  };
  /// In a trouble that ranks tell each other -2 stands for rank 0 of all, -3 for rank 1, ...: numbers from 0 are those
  /// of the transport that found it.
  static constexpr int first_coded = -2;
  /// Each step waits so many seconds longer than the one before: the rank that waits for the one to blame speaks first.
  static constexpr double grace = 0.2;

  template <class X>
  static auto bytes(X* x) {
    return reinterpret_cast<std::conditional_t<std::is_const_v<X>, const std::byte*, std::byte*>>(x);
  }
  template <class F>
  void each(const F& f) {
    f(*node_);
    f(*leaders_);
    f(*world_);
  }
  /// Any number may have come from another rank: without overflow.
  static int decoded(int peer) { return first_coded - std::max(peer, -std::numeric_limits<int>::max()); }
  /// f(), which calls the transport that has these ranks; its trouble is told in ranks of all.
  template <class F>
  static auto in(const char* where, const std::vector<int>& ranks, const F& f) {
    try {
      return f();
    } catch (const trouble& t) {
      if (t.peer <= first_coded) throw trouble{t.kind, decoded(t.peer), t.text};
      if (t.peer < 0 || static_cast<std::size_t>(t.peer) >= ranks.size()) throw trouble{t.kind, -1, t.text};
      const int peer = ranks[static_cast<std::size_t>(t.peer)];
      throw trouble{t.kind, peer, joined({where, ", where rank ", t.peer, " is rank ", peer, " of all: ", t.text})};
    }
  }
  template <class F>
  auto inside(const F& f) const {
    return in("inside the node", ranks_here_, f);
  }
  template <class F>
  auto between(const F& f) const {
    return in("between the nodes", leader_ranks_, f);
  }
  template <class F>
  auto over_all(const F& f) const {
    try {
      return f();
    } catch (const trouble& t) {
      if (t.peer > first_coded) throw;
      throw trouble{t.kind, decoded(t.peer), t.text};
    }
  }

 public:
  /// All ranks call it. Errors: a trouble; value_error on all ranks where nodes overlap.
  hierarchical_transport(std::unique_ptr<transport> node, std::unique_ptr<transport> world, const deadline& until)
      : node_(std::move(node)),
        world_(std::move(world)),
        name_(joined({"hierarchical: ", node_->name(), ", ", world_->name()})) {
    std::int32_t leader = world_->rank();
    node_->broadcast(header_of(operation::broadcast, 1), bytes(&leader), until);
    const place mine{leader, node_->rank(), node_->size()};
    places_.resize(static_cast<std::size_t>(size()));
    world_->all_gather(header_of(operation::all_gather, sizeof mine / sizeof leader), bytes(&mine), bytes(&places_[0]),
                       until);
    for (int r = 0; r < size(); ++r) {
      if (place_of(r).leader == leader) ranks_here_.push_back(r);
      if (place_of(r).leader == r) leader_ranks_.push_back(r);
    }
    std::sort(ranks_here_.begin(), ranks_here_.end(),
              [&](int a, int b) { return place_of(a).local < place_of(b).local; });
    require_places();
    require_parts_of_all();
    leaders_ = world_->split(header_of(operation::split, 0), is_leader() ? 0 : 1, 0, until);
  }

  const char* name() const override { return name_.c_str(); }
  int rank() const override { return world_->rank(); }
  int size() const override { return world_->size(); }
  bool keeps_time() const override { return node_->keeps_time() && world_->keeps_time(); }

  std::vector<call_header> exchange(const call_header& h, const deadline& until) override {
    return over_all([&] { return world_->exchange(h, until); });
  }
  /// The sum of a node is the same on its ranks, and that of all nodes is made once for each leader from the same
  /// numbers.
  void all_reduce(const call_header& h, std::byte* data, const deadline& until) override {
    inside([&] { node_->all_reduce(h, data, until); });
    if (nodes() == 1) return;
    const deadline second(until, grace), third(until, 2 * grace);
    if (is_leader()) between([&] { leaders_->all_reduce(h, data, second); });
    inside([&] { node_->broadcast(from(0, h), data, third); });
  }
  void broadcast(const call_header& h, std::byte* data, const deadline& until) override {
    const place root = place_of(h.root);
    const bool is_here = root.leader == place_of(rank()).leader;
    const auto nodes_before = std::lower_bound(leader_ranks_.begin(), leader_ranks_.end(), root.leader);
    if (is_here) inside([&] { node_->broadcast(from(root.local, h), data, until); });
    const deadline second(until, grace), third(until, 2 * grace);
    if (is_leader() && nodes() > 1)
      between(
          [&] { leaders_->broadcast(from(static_cast<int>(nodes_before - leader_ranks_.begin()), h), data, second); });
    if (!is_here) inside([&] { node_->broadcast(from(0, h), data, third); });
  }
  void all_gather(const call_header& h, const std::byte* mine, std::byte* all, const deadline& until) override {
    over_all([&] { world_->all_gather(h, mine, all, until); });
  }
  void reduce_scatter(const call_header& h, const std::byte* all, std::byte* mine, const deadline& until) override {
    over_all([&] { world_->reduce_scatter(h, all, mine, until); });
  }
  std::unique_ptr<transport> split(const call_header& h, int color, int key, const deadline& until) override {
    auto node = inside([&] { return node_->split(h, color, key, until); });
    auto world = over_all([&] { return world_->split(h, color, key, until); });
    return std::make_unique<hierarchical_transport>(std::move(node), std::move(world), until);
  }

  void start(transfer& t) override {
    over_all([&] { world_->start(t); });
  }
  bool test(transfer& t) override {
    return over_all([&] { return world_->test(t); });
  }
  void watch(const transfer& t, communication_clock::time_point end) override {
    over_all([&] { world_->watch(t, end); });
  }
  trouble timeout_of(const transfer& t) const override { return world_->timeout_of(t); }

  void tell(const trouble& why) noexcept override {
    trouble coded{why.kind, why.peer, {}};
    try {
      coded.text = why.text;
    } catch (...) {  // NOLINT: without memory without a text
    }
    if (why.peer >= 0) coded.peer = first_coded - why.peer;
    each([&](transport& one) { one.tell(coded); });
  }
  void close() override {
    each([](transport& one) { one.close(); });
  }
  void wake() override {
    each([&](transport& one) {
      if (is_interrupted()) one.interrupt();
      else one.wake();
    });
  }

 private:
  static call_header header_of(operation op, std::size_t count) {
    return make_header(op, element_kind::int32, count, 0, false, "nodes");
  }
  /// The same call as a broadcast of that rank.
  static call_header from(int root, call_header h) {
    h.op = operation::broadcast;
    h.root = root;
    h.is_max = 0;
    return h;
  }

  const place& place_of(int r) const { return places_[static_cast<std::size_t>(r)]; }
  bool is_leader() const { return node_->rank() == 0; }
  std::size_t nodes() const { return leader_ranks_.size(); }

  /// What the ranks have said of their places, before it is used as numbers of ranks. Errors: a trouble.
  SINTER_COLD void require_places() const {
    for (int r = 0; r < size(); ++r) {
      const place& p = place_of(r);
      if (p.leader < 0 || p.leader >= size() || p.node_size < 1 || p.node_size > size() || p.local < 0 ||
          p.local >= p.node_size)
        throw trouble{communication_failure::backend, r,
                      joined({"rank ", r, " says that it is rank ", p.local, " of ", p.node_size,
                              " of the node that rank ", p.leader, " leads, where there are ", size(), " ranks"})};
    }
  }
  SINTER_COLD void require_parts_of_all() const {
    for (int r = 0; r < size(); ++r) {
      const auto same = [&](const place& p) { return p.leader == place_of(r).leader; };
      const auto n = std::count_if(places_.begin(), places_.end(), same);
      if (n != place_of(r).node_size)
        refuse<value_error>({"hierarchical_communicator: the node of rank ", r, " has ", place_of(r).node_size,
                             " ranks, but ", n, " of all ranks name rank ", place_of(r).leader,
                             " as the first of their node; give communicators that together have each rank once"});
      const auto twin = [&](const place& p) { return same(p) && p.local == place_of(r).local; };
      if (std::count_if(places_.begin(), places_.end(), twin) > 1)
        throw trouble{communication_failure::backend, r,
                      joined({"rank ", r, " says that it is rank ", place_of(r).local,
                              " of its node, which another rank says as well"})};
    }
  }

  std::unique_ptr<transport> node_, world_, leaders_;  ///< leaders_ of a rank that is none is of these others
  std::string name_;
  std::vector<place> places_;      ///< of all ranks
  std::vector<int> ranks_here_;    ///< by their number in the node
  std::vector<int> leader_ranks_;  ///< by the number of the node
};

}  // namespace sinter::detail
