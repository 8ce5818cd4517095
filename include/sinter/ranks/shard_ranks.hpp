// sinter/ranks/shard_ranks.hpp: the parameters of a model dealt out to ranks, and how their owners spread new
// values.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "sinter/optim/optimizer.hpp"
#include "sinter/ranks/distributed.hpp"

namespace sinter::optim::detail {

/// The owner of each parameter: the largest are dealt out first, each to the rank that has the fewest bytes so far.
inline std::vector<int> deal_to_ranks(const std::vector<std::size_t>& bytes, int ranks) {
  std::vector<std::size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(),
            [&](std::size_t a, std::size_t b) { return bytes[a] != bytes[b] ? bytes[a] > bytes[b] : a < b; });
  std::vector<int> owners(bytes.size());
  std::vector<std::size_t> load(static_cast<std::size_t>(ranks));
  for (const std::size_t i : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bytes[i];
    owners[i] = static_cast<int>(least - load.begin());
  }
  return owners;
}

/// Parameters of one element type on one device.
class shard_group {
 public:
  explicit shard_group(const void* of_kind) : kind(of_kind) {}
  virtual ~shard_group() = default;
  shard_group(const shard_group&) = delete;
  shard_group& operator=(const shard_group&) = delete;
  /// Each rank begins to send those of its own that have a gradient, the others to receive them.
  virtual void start() = 0;
  virtual void finish() = 0;

  const void* const kind;
};

template <class T, device D, class C>
class typed_shard_group final : public shard_group {
  /// A parameter of so many bytes is sent from its own memory; smaller ones are put together.
  static constexpr std::size_t large = 1 << 20;
  struct parameter {
    sinter::detail::state_ptr state;
    tensor<T, 1, D> values;  ///< its memory
    int owner;
  };
  struct package {
    int owner;
    std::vector<const parameter*> parts;
    work<tensor<T, 1, D>> coming;
  };

 public:
  typed_shard_group(const void* of_kind, C& ranks) : shard_group(of_kind), ranks_(ranks) {}

  template <class V>
  void add(const V& v, int owner) {
    if (v.numel() > 0)
      parameters_.push_back({access::state_of(v), access::in_memory_order(access::value_of(v)), owner});
  }

  void start() override {
    for (int owner = 0; owner < ranks_.size(); ++owner) {
      const std::string name = sinter::detail::joined({"parameters of rank ", owner});
      std::vector<const parameter*> joint;
      for (const parameter& p : parameters_) {
        if (p.owner != owner || !p.state->has_kept) continue;
        if (static_cast<std::size_t>(p.values.numel()) * sizeof(T) < large) joint.push_back(&p);
        else packages_.push_back({owner, {}, ranks_.broadcast(p.values, owner, name)});
      }
      if (!joint.empty()) packages_.push_back({owner, joint, ranks_.broadcast(joined_values(joint), owner, name)});
    }
  }
  void finish() override {
    for (package& one : packages_) {
      const tensor<T, 1, D> values = one.coming.get();
      if (one.owner == ranks_.rank()) continue;
      index_t begin = 0;
      for (const parameter* p : one.parts) {
        const index_t end = begin + p->values.numel();
        p->values.in_place() = values.slice(0, begin, end);
        begin = end;
      }
    }
    packages_.clear();
  }

 private:
  /// Room for the values of these parameters of one rank, and on that rank the values.
  tensor<T, 1, D> joined_values(const std::vector<const parameter*>& parts) const {
    index_t end = 0;
    for (const parameter* p : parts) end += p->values.numel();
    auto all = tensor<T, 1, D>::uninitialized(extents<1>{{end}});
    if (parts.front()->owner != ranks_.rank()) return all;
    end = 0;
    for (const parameter* p : parts) {
      const index_t begin = end;
      end += p->values.numel();
      all.slice(0, begin, end).in_place() = p->values;
    }
    return all;
  }

  C& ranks_;
  std::vector<parameter> parameters_;
  std::vector<package> packages_;  ///< under way
};

/// What an optimizer needs of a model on several ranks, free of the types of the model and of the communicators.
class shard_ranks {
 public:
  virtual ~shard_ranks() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// f(); what it throws ends the work of all ranks.
  virtual void guarded(const std::function<void()>& f) = 0;
  /// All ranks get the values of the owners' parameters, those with a gradient.
  virtual void spread() = 0;
  /// On rank 0: the bytes of all ranks, in their order. On others: nothing. `most`: bytes that each rank may have.
  /// Errors: a communication_error for a rank that has more.
  virtual std::vector<tensor<std::uint8_t, 1>> gather(const tensor<std::uint8_t, 1>& mine,
                                                      const std::vector<index_t>& most) = 0;
  /// By the number of the parameter.
  std::vector<int> owners;
};

template <class Distributed>
class typed_shard_ranks final : public shard_ranks {
 public:
  explicit typed_shard_ranks(Distributed& ranks) : ranks_(ranks) {
    std::vector<std::size_t> bytes;  // of what a rule keeps, up to a factor that is the same for all
    for_each_variable(ranks.model(), [&](const std::string&, const auto& v) {
      bytes.push_back(static_cast<std::size_t>(v.numel()) * sizeof(compute_type<element_of<decltype(v)>>));
    });
    owners = deal_to_ranks(bytes, ranks.size());
    ranks_.with_communicators([&](auto&... all) {
      std::size_t number = 0;
      for_each_variable(ranks.model(), [&](const std::string&, const auto& v) {
        using T = element_of<decltype(v)>;
        using D = device_of<decltype(v)>;
        const int owner = owners[number++];
        if constexpr (sinter::detail::is_fitting<
                          nn::detail::reach_mistake<bare<decltype(v)>, bare<decltype(all)>...>>) {
          auto& own = nn::detail::communicator_for<D>(all...);
          using group = typed_shard_group<T, D, bare<decltype(own)>>;
          const void* const kind = &nn::detail::bucket_kind<T, D>;
          const auto same = [&](const auto& g) { return g->kind == kind; };
          auto at = std::find_if(groups_.begin(), groups_.end(), same);
          if (at == groups_.end()) at = groups_.insert(at, std::make_unique<group>(kind, own));
          static_cast<group&>(**at).add(v, owner);
        }
      });
    });
  }

  int rank() const override { return ranks_.rank(); }
  int size() const override { return ranks_.size(); }
  void guarded(const std::function<void()>& f) override {
    ranks_.with_communicators([&](auto&...) { f(); });
  }
  void spread() override {
    for (const auto& g : groups_) g->start();
    for (const auto& g : groups_) g->finish();
  }
  std::vector<tensor<std::uint8_t, 1>> gather(const tensor<std::uint8_t, 1>& mine,
                                              const std::vector<index_t>& most) override {
    std::vector<tensor<std::uint8_t, 1>> all;
    ranks_.with_communicators([&](auto& world, auto&...) {
      const tensor<std::int64_t, 1> sizes =
          world.all_gather(tensor<std::int64_t, 1>{mine.numel()}, "sizes of optimizer states").get();
      if (rank() > 0) return world.send(mine, 0).get();
      all.push_back(mine);
      for (int r = 1; r < size(); ++r) {
        sinter::detail::require_told(sizes(r) >= 0 && sizes(r) <= most[static_cast<std::size_t>(r)], world, r,
                                     "sharded", "of a state of ", sizes(r), " bytes, where it keeps ",
                                     most[static_cast<std::size_t>(r)], " at most");
        all.push_back(world.template receive<std::uint8_t>(sizes(r), r).get());
      }
    });
    return all;
  }

 private:
  Distributed& ranks_;
  std::vector<std::unique_ptr<shard_group>> groups_;
};

/// Values of any types in one row of bytes: for each its rank (-1: none), element type and shape, then its elements.
class packed_values {
 public:
  /// No rule keeps more in a member of its state of a parameter of n elements: 32 doubles for each.
  static index_t most_bytes(index_t n) { return 4096 + 256 * n; }
  void add(const std::optional<host_tensor>& x) {
    if (!x) return add_number(-1);
    add_number(static_cast<std::int64_t>(x->shape.size()));
    add_number(static_cast<std::int64_t>(x->element));
    for (const index_t n : x->shape) add_number(n);
    add_bytes(x->bytes.data(), x->bytes.size());
  }
  tensor<std::uint8_t, 1> take() const {
    auto all = tensor<std::uint8_t, 1>::uninitialized(extents<1>{{static_cast<index_t>(bytes_.size())}});
    if (!bytes_.empty()) std::memcpy(all.data(), bytes_.data(), bytes_.size());
    return all;
  }

 private:
  void add_bytes(const void* from, std::size_t n) {
    const auto* const first = static_cast<const unsigned char*>(from);
    bytes_.insert(bytes_.end(), first, first + n);
  }
  void add_number(std::int64_t x) { add_bytes(&x, sizeof x); }
  std::vector<unsigned char> bytes_;
};

/// Takes them out again.
class unpacked_values {
 public:
  explicit unpacked_values(tensor<std::uint8_t, 1> from, int of_rank)
      : from_(std::make_shared<const tensor<std::uint8_t, 1>>(from)), of_rank_(of_rank) {}
  /// Shares the memory of the row. Errors: value_error where it does not fit.
  std::optional<host_tensor> next() {
    const std::int64_t rank = number();
    if (rank == -1) return std::nullopt;
    const std::int64_t element = number();
    if (rank < 0 || rank > max_rank || element < 0 || element >= static_cast<std::int64_t>(element_kind::other))
      refuse();
    host_tensor x;
    x.element = static_cast<element_kind>(element);
    std::size_t count = 1;
    for (std::int64_t d = 0; d < rank; ++d) {
      const index_t n = x.shape.emplace_back(number());
      if (n < 0 || (n > 0 && count > size() / static_cast<std::size_t>(n))) refuse();
      count *= static_cast<std::size_t>(n);
    }
    x.bytes = {static_cast<const std::byte*>(bytes(count * element_size(x.element))), count * element_size(x.element)};
    x.owner = from_;
    return x;
  }
  /// Errors: value_error where something is left.
  void require_end() const {
    if (place_ != size()) refuse();
  }

 private:
  [[noreturn]] SINTER_COLD void refuse() const {
    sinter::detail::refuse<value_error>({"sharded: the ranks keep different states, as that of rank ", of_rank_,
                                         " is not the one of its parameters; make the same optimizer on all of them"});
  }
  std::size_t size() const { return static_cast<std::size_t>(from_->numel()); }
  const void* bytes(std::size_t n) {
    if (n > size() - place_) refuse();
    return from_->data() + std::exchange(place_, place_ + n);
  }
  std::int64_t number() {
    std::int64_t x;
    std::memcpy(&x, bytes(sizeof x), sizeof x);
    return x;
  }
  std::shared_ptr<const tensor<std::uint8_t, 1>> from_;
  int of_rank_;
  std::size_t place_ = 0;
};

}  // namespace sinter::optim::detail
