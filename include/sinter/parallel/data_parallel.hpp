// sinter/parallel/data_parallel.hpp: a module whose batch is cut over devices, each with a replica.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "sinter/parallel/replicas.hpp"
#include "sinter/parallel/team.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct a_device_is_listed_twice_in;
struct name_each_device_once;
template <class>
struct module_that_cannot_be_replicated;
template <class...>
struct replicas_without_devices;
struct name_the_devices_in_angle_brackets;

namespace nn {

namespace detail {

template <class X, class... D>
inline constexpr int times_listed = (int{std::is_same_v<X, D>} + ... + 0);
template <class... D>
inline constexpr bool all_different = ((times_listed<D, D...> == 1) && ...);

/// Part I of N samples over G devices: ceil(N / G) each, as long as there are any. The first part runs in any case.
struct shard {
  index_t begin = 0, end = 0;
  bool runs = false;
  index_t size() const { return end - begin; }
};
inline shard shard_of(index_t n, int parts, int part) {
  const index_t chunk = (n + parts - 1) / parts;
  const index_t begin = std::min<index_t>(n, chunk * part);
  const index_t end = std::min<index_t>(n, begin + chunk);
  return {begin, end, part == 0 || end > begin};
}

/// X, a tensor or variable, on another device.
template <class X, class D>
struct on_device_type;
template <class T, auto S, class From, class D>
struct on_device_type<tensor<T, S, From>, D> {
  using type = tensor<T, S, D>;
};
template <class T, auto S, class From, int Order, class D>
struct on_device_type<variable<T, S, From, Order>, D> {
  using type = variable<T, S, D, Order>;
};
template <class X, class D>
using moved_type = typename on_device_type<X, D>::type;

/// What one replica is fed with and gives, from forward until its graph is released.
template <std::size_t I, class X, class Y>
struct shard_run {
  std::optional<X> x;
  std::optional<Y> y;
};

template <class M, class X>
using result_of = sinter::detail::evaluated<decltype(std::declval<const M&>()(std::declval<const X&>()))>;

template <std::size_t I, class M>
struct replica_slot {
  M module;
};

/// The replicas of an M on devices D, and the threads they run on.
template <class Index, class M, class... D>
class replica_set;
template <std::size_t... I, class M, class... D>
class replica_set<std::index_sequence<I...>, M, D...>
    : replica_slot<I, typename M::template rebind<D, typename M::kind>>... {
  using H = device_of<M>;
  template <class D0>
  using twin = typename M::template rebind<D0, typename M::kind>;

 public:
  static constexpr int parts = sizeof...(D);
  template <class X>
  struct runs : shard_run<I, moved_type<X, D>, result_of<twin<D>, moved_type<X, D>>>... {
    using input = X;
    using output = moved_type<typename first_of<result_of<twin<D>, moved_type<X, D>>...>::type, H>;
    shard cut[sizeof...(D)];
    template <std::size_t P>
    auto& part() {
      return this->template at<P>(*this);
    }

   private:
    template <std::size_t P, class X0, class Y0>
    static shard_run<P, X0, Y0>& at(shard_run<P, X0, Y0>& r) {
      return r;
    }
  };

  explicit replica_set(const M& original)
      : replica_slot<I, twin<D>>{replica_of<D>(original)}...,
        team_({device_name<D>()...}),
        originals_(original),
        pairs_{pairs_of<D>(originals_, module<I>())...} {}

  /// Are these still replicas of the original, none of whose members was replaced?
  bool fits(const M& original) const { return originals_.same_as(member_handles<H>(original)); }

  template <std::size_t P>
  auto& module() {
    return slot<P>(*this).module;
  }
  sinter::detail::team& team() { return team_; }

  /// Calls f of the part with this number, as a type.
  template <class F>
  static void with_part(int part, const F& f) {
    (void(part == int{I} ? (f(std::integral_constant<std::size_t, I>{}), 0) : 0), ...);
  }

  /// Brings values, modes and settings up to date.
  void refresh(const M& original, bool training) {
    for (const member_pairs& of_replica : pairs_)
      for (const auto& pair : of_replica) pair->refresh();
    if (training != training_) (module<I>().train(training), ...);
    training_ = training;
    const copy_settings copy;
    (walk(nullptr, copy, module<I>(), original), ...);
  }
  /// Hands over to the original what the replicas' forward has changed: buffers and generators.
  void merge(const M& original, const shard (&cut)[sizeof...(D)], index_t samples) {
    const return_generators back;
    walk(nullptr, back, module<0>(), original);
    for (std::size_t j = 0; j < originals_.size(); ++j) {
      bool changed = false;
      for (const member_pairs& of_replica : pairs_) changed = changed || of_replica[j]->changed();
      if (!changed) continue;
      std::vector<member_pair*> all;
      std::vector<double> weights;
      for (std::size_t i = 0; i < sizeof...(D); ++i) {
        if (!cut[i].runs) continue;
        all.push_back(pairs_[i][j].get());
        weights.push_back(samples == 0 ? 1. : static_cast<double>(cut[i].size()) / static_cast<double>(samples));
      }
      all.front()->merge(all, weights);
    }
  }
  /// The states of the original's parameters.
  std::vector<state_ptr> states() const {
    std::vector<state_ptr> all;
    for (const auto& pair : pairs_[0])
      if (state_ptr s = pair->original_state()) all.push_back(std::move(s));
    return all;
  }
  /// Adds the replicas' gradients to the original's, in the order of the devices.
  void give_gradients() {
    for (std::size_t j = 0; j < originals_.size(); ++j)
      for (const member_pairs& of_replica : pairs_) of_replica[j]->give_gradient();
  }
  void drop_gradients() noexcept {
    for (const member_pairs& of_replica : pairs_)
      for (const auto& pair : of_replica) pair->drop_gradient();
  }

 private:
  struct copy_settings {
    template <class To, class From>
    void operator()(const member_name&, To& to, const From& from) const {
      if constexpr (!is_stored<To> && std::is_same_v<To, From> && std::is_copy_assignable_v<To>) to = from;
    }
    template <class To, class From>
    void erased(const member_name*, To&, const From&) const {}
  };
  /// Generators are mutable members.
  struct return_generators {
    template <class From, class To>
    void operator()(const member_name&, From& from, To& to) const {
      if constexpr (std::is_same_v<From, generator> && std::is_same_v<To, generator>) to = from;
    }
    template <class To, class From>
    void erased(const member_name*, To&, const From&) const {}
  };
  template <std::size_t P, class M0>
  static replica_slot<P, M0>& slot(replica_slot<P, M0>& s) {
    return s;
  }

  sinter::detail::team team_;
  member_handles<H> originals_;
  member_pairs pairs_[sizeof...(D)];
  bool training_ = true;
};

/// The tape entry of a call: the graphs of the replicas, which it walks at the same time.
template <class Set, class Runs>
struct replicated_backward final : sinter::detail::tape_entry {
  using X = typename Runs::input;
  using Y = typename Runs::output;
  template <class V>
  using state_of = sinter::detail::typed_state<element_of<V>, rank_of<V>, device_of<V>>;

  replicated_backward(std::shared_ptr<Set> set, std::shared_ptr<Runs> runs, state_ptr x)
      : set_(std::move(set)), runs_(std::move(runs)), inputs_(set_->states()) {
    name = "data_parallel";
    inputs_.push_back(std::move(x));
  }
  const state_ptr* inputs(int& count) const override {
    count = static_cast<int>(inputs_.size());
    return inputs_.data();
  }
  void release() override { runs_.reset(); }

  void backward(sinter::detail::grad_state& y) override {
    const auto& dy = static_cast<state_of<Y>&>(y).grad;
    const bool retain = sinter::detail::graph_is_retained();
    try {
      set_->team().run("backward of data_parallel", [&](int part) {
        Set::with_part(part, [&]<std::size_t P>(std::integral_constant<std::size_t, P>) {
          const auto& run = runs_->template part<P>();
          const shard cut = runs_->cut[P];
          if (!cut.runs || !access::state_of(*run.y)) return;
          using D = device_of<decltype(*run.y)>;
          run.y->backward(dy.slice(0, cut.begin, cut.end).template to<D>(), {.retain_graph = retain});
        });
      });
    } catch (...) {
      set_->drop_gradients();
      throw;
    }
    set_->give_gradients();
    if constexpr (is_variable<X>)
      if (inputs_.back()) gather_input();
  }

 private:
  void gather_input() {
    auto& to = static_cast<state_of<X>&>(*inputs_.back());
    bool add = false;
    to.gradient(add);
    for (int part = 0; part < Set::parts; ++part)
      Set::with_part(part, [&]<std::size_t P>(std::integral_constant<std::size_t, P>) {
        const auto& run = runs_->template part<P>();
        const shard cut = runs_->cut[P];
        if (cut.size() == 0) return;
        const auto place = to.grad.slice(0, cut.begin, cut.end);
        if (run.x->has_grad()) {
          sinter::detail::write_or_add(run.x->grad().template to<device_of<X>>(), place, add);
          run.x->zero_grad();
        } else if (!add) {
          place.in_place() = element_of<X>(0);
        }
      });
  }

  std::shared_ptr<Set> set_;
  std::shared_ptr<Runs> runs_;
  std::vector<state_ptr> inputs_;
};

}  // namespace detail

/// What data_parallel() returns; a module as the one it was made of.
template <is_module M, device... D>
struct data_parallel_over : module<data_parallel_over<M, D...>> {
  using device_type = device_of<M>;
  using kind = typename M::kind;
  template <class To, class K>
  using rebind = data_parallel_over<typename detail::rebound<M, To, K>::type, D...>;

  data_parallel_over() = default;
  explicit data_parallel_over(M m) : module(std::move(m)) {}

  M module;
  nn::mode mode;

  template <class F, class... S>
  static void visit(F&& f, S&... s) {
    f("module", s.module...);
    f("mode", s.mode...);
  }

  template <class E>
  auto forward(const E& input) const {
    using X = sinter::detail::evaluated<E>;
    const X x = sinter::detail::eval_to_read(input);
    static_assert(rank_of<X> >= 1, "sinter: data_parallel cuts its input along axis 0, which a single number lacks");
    if (!replicas_ || !replicas_->fits(module)) replicas_ = std::make_shared<replica_set>(module);
    return run(x);
  }

 private:
  using replica_set = detail::replica_set<std::make_index_sequence<sizeof...(D)>, M, D...>;

  template <class X>
  auto run(const X& x) const {
    using Runs = typename replica_set::template runs<X>;
    using Y = typename Runs::output;
    using sinter::detail::access;
    replica_set& set = *replicas_;
    set.refresh(module, mode.training);
    const auto runs = std::make_shared<Runs>();
    const index_t n = x.extent(0);
    for (int i = 0; i < replica_set::parts; ++i) runs->cut[i] = detail::shard_of(n, replica_set::parts, i);
    sinter::detail::draw_log log;
    sinter::detail::draw_source* const outer = sinter::detail::current_draws();
    set.team().run("data_parallel", [&](int part) {
      const auto role =
          part == 0 ? sinter::detail::draw_source::role::writes : sinter::detail::draw_source::role::repeats;
      const detail::shard cut = runs->cut[part];
      if (!cut.runs) return;
      const sinter::detail::draw_source draws(log, role, outer);
      const samples_from samples(sinter::detail::first_sample() + cut.begin);
      replica_set::with_part(part, [&]<std::size_t P>(std::integral_constant<std::size_t, P>) {
        auto& to = runs->template part<P>();
        using XP = typename std::remove_cvref_t<decltype(to.x)>::value_type;
        to.x.emplace(part_of<XP>(x, cut));
        to.y.emplace(eval(set.template module<P>()(*to.x)));
        if (to.y->extent(0) != cut.size())
          sinter::detail::refuse<shape_error>(
              {"the module gave ", to.y->extent(0), " samples for ", cut.size(), "; data_parallel needs one for each"});
      });
    });
    if (mode.training) set.merge(module, runs->cut, n);
    const auto value = gathered<Y>(*runs, n);
    if constexpr (detail::is_variable<Y>) {
      sinter::detail::state_ptr of_x;
      if constexpr (detail::is_variable<X>) of_x = access::state_of(x);
      if (!sinter::detail::recording()) return sinter::detail::unrecorded<1>(value);
      return sinter::detail::produced<1>(
          value, std::make_unique<detail::replicated_backward<replica_set, Runs>>(replicas_, runs, of_x));
    } else {
      return value;
    }
  }
  /// The samples of one part on its device: a leaf where x is tracked.
  template <class XP, class X>
  static XP part_of(const X& x, const detail::shard& cut) {
    if constexpr (detail::is_variable<X>) {
      const auto value = x.value().slice(0, cut.begin, cut.end).template to<device_of<XP>>();
      if (sinter::detail::access::state_of(x)) return XP(value);
      return sinter::detail::unrecorded<1>(value);
    } else {
      return x.slice(0, cut.begin, cut.end).template to<device_of<XP>>();
    }
  }
  template <class Y, class Runs>
  static auto gathered(Runs& runs, index_t n) {
    constexpr int R = rank_of<Y>;
    using T = element_of<Y>;
    const auto value_of = [](const auto& y) { return detail::stored_value(y); };
    const auto first = value_of(*runs.template part<0>().y);
    extents<R> shape = first.shape();
    shape[0] = n;
    const auto all =
        tensor<T, R, device_type>::uninitialized(shape, sinter::detail::dense_strides_like(shape, first.strides()));
    for (int part = 0; part < replica_set::parts; ++part)
      replica_set::with_part(part, [&]<std::size_t P>(std::integral_constant<std::size_t, P>) {
        const detail::shard cut = runs.cut[P];
        if (cut.size() == 0) return;
        all.slice(0, cut.begin, cut.end).in_place() = value_of(*runs.template part<P>().y).template to<device_type>();
      });
    return all;
  }

  mutable std::shared_ptr<replica_set> replicas_;
};

namespace detail {

template <class M, class... D>
constexpr auto find_replication_mistake() {
  using sinter::detail::mistake;
  if constexpr (!is_module<M>) return sinter::detail::not_operands{};
  else if constexpr (sizeof...(D) == 0)
    return mistake<replicas_without_devices<M>, name_the_devices_in_angle_brackets>{};
  else if constexpr (!all_different<D...>) return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else if constexpr (!(has_twin_on<M, D> && ...) || !on_one_device<M>)
    return mistake<module_that_cannot_be_replicated<M>, declare_it_template_device_D_class_Kind_or_give_it_a_rebind>{};
  else return sinter::detail::fitting<void>{};
}
template <class M, class... D>
using replication_mistake = decltype(find_replication_mistake<bare<M>, D...>());

}  // namespace detail

template <device... D, class M>
  requires(sinter::detail::is_fitting<detail::replication_mistake<M, D...>>)
data_parallel_over<sinter::detail::bare<M>, D...> data_parallel(const M& model) {
  return data_parallel_over<M, D...>(model);
}
template <device... D, class M, class Problem = typename detail::replication_mistake<M, D...>::problem,
          class Fix = typename detail::replication_mistake<M, D...>::fix>
void data_parallel(const M&) = delete;

}  // namespace nn
}  // namespace sinter
