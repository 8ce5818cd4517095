// sinter/parallel/replicas.hpp: the parameters and buffers of a module beside those of its copy on another device.
#pragma once

#include <memory>
#include <vector>

#include "sinter/grad/statement.hpp"
#include "sinter/grad/view.hpp"
#include "sinter/nn/module.hpp"

namespace sinter::nn::detail {

using sinter::detail::access;
using sinter::detail::state_ptr;

template <class Tensor>
std::uint64_t version_of(const Tensor& x) {
  return access::storage_of(x)->version.load(std::memory_order_relaxed);
}

/// A parameter or buffer of a module on its home device, and the same one of a replica.
class member_pair {
 public:
  virtual ~member_pair() = default;
  /// Copies the value to the replica, if the original was written to since.
  virtual void refresh() {}
  /// Where the gradient of the original is gathered; null for what has none.
  virtual state_ptr original_state() const { return {}; }
  /// Adds the replica's gradient to that of the original in the pass that runs, and drops it.
  virtual void give_gradient() {}
  virtual void drop_gradient() noexcept {}
  /// Did the replica write to its own value, as batch norms do?
  virtual bool changed() const { return false; }
  /// Copies the replica's value to a tensor of the original's type.
  virtual void value_at_home(void*) const {}
  /// Writes to the original the mean of the replicas' values by these weights, or where values are integers the first
  /// of them. `pairs` are those of this original, as many as weights.
  virtual void merge(const std::vector<member_pair*>&, const std::vector<double>&) {}
};

/// A parameter: a variable, or in infer() a tensor.
template <class X, device H, device D>
class parameter_pair final : public member_pair {
  using T = element_of<X>;
  static constexpr int R = rank_of<X>;
  using original_type = std::conditional_t<is_variable<X>, variable<T, R, H>, tensor<T, R, H>>;

 public:
  parameter_pair(original_type original, X replica)
      : original_(std::move(original)), replica_(std::move(replica)), seen_(version_of(value(original_))) {}

  void refresh() override {
    const auto from = value(original_);
    const auto to = value(replica_);
    const std::uint64_t now = version_of(from);
    if (now == seen_ || shared()) return;
    to.in_place() = from.template to<D>();
    seen_ = now;
  }
  state_ptr original_state() const override {
    if constexpr (is_variable<X>) return access::state_of(original_);
    else return {};
  }
  void give_gradient() override {
    if constexpr (is_variable<X>) {
      if (!replica_.has_grad()) return;
      if constexpr (R == 2)
        if (give_rows()) return;
      auto g = replica_.grad();
      replica_.zero_grad();
      if constexpr (std::is_same_v<H, D>) sinter::detail::add_gradient(access::state_of(original_), g);
      else sinter::detail::add_gradient(access::state_of(original_), g.template to<H>());
    }
  }
  void drop_gradient() noexcept override {
    if constexpr (is_variable<X>) replica_.zero_grad();
  }

 private:
  /// Adds the rows of the replica's gradient, where both are held by rows; whether they are.
  bool give_rows() const {
    auto* const to = sinter::detail::rows_in<T, H>(access::state_of(original_));
    auto* const from = sinter::detail::rows_in<T, D>(access::state_of(replica_));
    if (to == nullptr || from == nullptr || !from->kept_rows.defined()) return false;
    const row_gradient<T, D> g = std::exchange(from->kept_rows, {});
    from->drop_kept();
    to->add_rows({g.rows.template to<H>(), g.values.template to<H>()});
    return true;
  }
  template <class V>
  static auto value(const V& v) {
    return stored_value(v);
  }
  bool shared() const {
    if constexpr (std::is_same_v<H, D>) return access::data(value(original_)) == access::data(value(replica_));
    else return false;
  }

  original_type original_;
  X replica_;
  std::uint64_t seen_;
};

template <class T, int R, device H, device D>
class buffer_pair final : public member_pair {
 public:
  buffer_pair(const buffer<T, R, H>& original, const buffer<T, R, D>& replica)
      : original_(original.value()),
        replica_(replica.value()),
        seen_(version_of(original_)),
        own_(version_of(replica_)) {}

  void refresh() override {
    const std::uint64_t now = version_of(original_);
    // changed(): it comes from a call that has failed, or changed the other replicas' only.
    if (now != seen_ || changed()) replica_.in_place() = original_.template to<D>();
    seen_ = now;
    own_ = version_of(replica_);
  }
  bool changed() const override { return version_of(replica_) != own_; }
  void value_at_home(void* to) const override { *static_cast<tensor<T, R, H>*>(to) = replica_.template to<H>(); }
  void merge(const std::vector<member_pair*>& pairs, const std::vector<double>& weights) override {
    tensor<T, R, H> sum;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      tensor<T, R, H> value;
      pairs[i]->value_at_home(&value);
      if constexpr (floating_element<T>) {
        const auto w = static_cast<T>(weights[i]);
        if (i == 0) sum = value * w;
        else sum += value * w;
      } else if (i == 0) {
        sum = value;
      }
    }
    original_.in_place() = sum;
  }

 private:
  tensor<T, R, H> original_;
  tensor<T, R, D> replica_;
  std::uint64_t seen_, own_;
};

/// The parameters and buffers of a module, as handles. In every module of one kind they come in one order.
template <device H>
class member_handles {
 public:
  template <class M>
  explicit member_handles(const M& m) {
    const take_member take{*this};
    walk(nullptr, take, m);
  }
  std::size_t size() const { return handles_.size(); }
  /// A handle in its type, which the same member of a module of this kind has.
  template <class X>
  const X& at(std::size_t i) const {
    return *static_cast<const X*>(handles_[i].get());
  }
  /// Are these the same parameters and buffers, by their memory?
  bool same_as(const member_handles& other) const { return memory_ == other.memory_; }

 private:
  struct take_member {
    member_handles& to;
    template <class X>
    void operator()(const member_name&, const X& x) const {
      if constexpr (is_stored<X>) {
        to.handles_.push_back(std::make_shared<X>(x));
        to.memory_.push_back(x.defined() ? static_cast<const void*>(access::storage_of(stored_value(x)).get())
                                         : nullptr);
      }
    }
    template <class M>
    void erased(const member_name* name, const M& m) const {
      m.each_member(name, *this);
    }
  };

  std::vector<std::shared_ptr<void>> handles_;
  std::vector<const void*> memory_;
};

using member_pairs = std::vector<std::unique_ptr<member_pair>>;

/// Pairs the members of a replica on D with the handles of the original on H, one of each parameter that is used twice.
template <device H, device D>
struct pair_members {
  const member_handles<H>& original;
  member_pairs& pairs;
  std::size_t& next;
  sinter::detail::addresses& seen;

  template <class X>
  void operator()(const member_name&, const X& x) const {
    if constexpr (is_stored<X>) {
      constexpr int R = decltype(stored_value(x))::rank;
      using T = typename decltype(stored_value(x))::value_type;
      const std::size_t i = next++;
      if (!x.defined() || !seen.add(access::data(stored_value(x)))) {
        pairs.push_back(std::make_unique<member_pair>());
      } else if constexpr (is_buffer<X>) {
        pairs.push_back(std::make_unique<buffer_pair<T, R, H, D>>(original.template at<buffer<T, R, H>>(i), x));
      } else {
        using original_type = std::conditional_t<is_variable<X>, variable<T, R, H>, tensor<T, R, H>>;
        pairs.push_back(std::make_unique<parameter_pair<X, H, D>>(original.template at<original_type>(i), x));
      }
    }
  }
  template <class M>
  void erased(const member_name* name, const M& m) const {
    m.each_member(name, *this);
  }
};
template <device D, device H, class M>
member_pairs pairs_of(const member_handles<H>& original, const M& replica) {
  member_pairs pairs;
  std::size_t next = 0;
  sinter::detail::addresses seen;
  const pair_members<H, D> pair{original, pairs, next, seen};
  walk(nullptr, pair, replica);
  return pairs;
}

/// Members that are neither parameters nor buffers.
enum class settings { all, all_but_mode, generators };

/// Copies them from one module to another.
template <settings Which>
struct copy_settings_of {
  template <class To, class From>
  void operator()(const member_name&, To& to, From& from) const {
    using X = std::remove_cvref_t<To>;
    if constexpr (!is_stored<X> && std::is_same_v<X, std::remove_cvref_t<From>> && !std::is_const_v<To> &&
                  (Which != settings::all_but_mode || !std::is_same_v<X, mode>) &&
                  (Which != settings::generators || std::is_same_v<X, generator>)) {
      if constexpr (Which == settings::generators) sinter::detail::note_before_draw(to);
      to = from;
    }
  }
  template <class To, class From>
  void erased(const member_name*, To&, From&) const {}
};

/// Makes the members of a replica. On the original's own device parameters share its memory, as leaves of their own.
struct replicate_members {
  member_copies& copies;
  template <class To, class From>
  void operator()(const member_name&, To& to, const From& from) const {
    if constexpr (is_variable<From> && std::is_same_v<To, From>) {
      if (!from.defined()) return;
      for (const auto& e : *ties)
        if (e.from == access::state_of(from).get()) {
          to = *static_cast<const To*>(e.to);
          return;
        }
      to = sinter::detail::leaf_like<To>(from, from.value());
      ties->push_back({access::state_of(from).get(), &to});
    } else if constexpr (is_tensor<From> && std::is_same_v<To, From>) {
      to = from;
    } else {
      copies.copy(to, from);
    }
  }
  template <class To, class From>
  void erased(const member_name*, To& to, const From& from) const {
    to = from.template moved<device_of<To>>(copies);
  }
  struct tie {
    const void *from, *to;
  };
  std::vector<tie>* ties;
};

/// A copy of m on D that is trained beside it.
template <device D, class M>
auto replica_of(const M& m) {
  typename M::template rebind<D, typename M::kind> replica;
  member_copies copies;
  std::vector<replicate_members::tie> ties;
  const replicate_members put{copies, &ties};
  walk(nullptr, put, replica, m);
  return replica;
}

}  // namespace sinter::nn::detail
