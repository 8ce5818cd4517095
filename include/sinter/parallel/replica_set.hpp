// sinter/parallel/replica_set.hpp: the replicas of a module on several devices, and the threads they run on.
#pragma once

#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "sinter/parallel/parts.hpp"
#include "sinter/parallel/replicas.hpp"
#include "sinter/parallel/team.hpp"

namespace sinter::nn::detail {

using sinter::detail::moved_type;
using sinter::detail::parts;
using sinter::detail::sample_range;
using sinter::detail::with_part;

template <class M, class D>
using twin_on = typename M::template rebind<D, typename M::kind>;

/// The replicas of an M on devices D, and the threads they run on.
template <class M, class... D>
class replica_set {
  using H = device_of<M>;

 public:
  static constexpr int count = sizeof...(D);

  explicit replica_set(const M& original)
      : replicas_(replica_of<D>(original)...), team_({device_name<D>()...}), originals_(original) {
    sinter::detail::each_part<count>([&](auto part) {
      using D0 = sinter::detail::type_of_part<part(), D...>;
      pairs_[part()] = pairs_of<D0>(originals_, replica<part()>());
    });
  }

  /// Are these still replicas of the original, none of whose members was replaced?
  bool fits(const M& original) const { return originals_.same_as(member_handles<H>(original)); }

  template <std::size_t P>
  auto& replica() {
    return replicas_.template at<P>();
  }

  /// What a call holds from its refresh() to its merge(), and a backward while it runs: threads that call one module at
  /// the same time take turns. Errors: value_error inside of a call, which would wait for itself.
  std::unique_lock<std::mutex> take_turn() {
    if (inside_of() == this)
      throw value_error("data_parallel: called inside a call of its own, as by its loss; call it before or after");
    return std::unique_lock(turn_);
  }

  /// Calls f(part as a type) for the parts that have samples, at the same time, each with the draws of its samples.
  template <class F>
  void run(const char* doing, const sample_range (&cut)[sizeof...(D)], const F& f) {
    sinter::detail::draw_log log;
    sinter::detail::draw_source* const outer = sinter::detail::current_draws();
    team_.run(doing, [&](int part) {
      if (!cut[part].runs) return;
      using role = sinter::detail::draw_source::role;
      const sinter::detail::draw_source draws(log, part == 0 ? role::writes : role::repeats, outer);
      const samples_from samples(sinter::detail::current_samples().behind(cut[part].begin));
      const inside here(this);
      with_part<count>(part, f);
    });
  }

  /// Has a call shown what the module gives for two numbers of samples?
  bool output_is_known = false;
  /// Do several replicas get samples, all the same number?
  static bool is_even(const sample_range (&cut)[sizeof...(D)]) {
    bool even = cut[count > 1 ? 1 : 0].size() > 0;
    for (const sample_range& own : cut) even = even && (own.size() == 0 || own.size() == cut[0].size());
    return even && count > 1;
  }

  /// Brings values, modes and settings up to date.
  void refresh(const M& original, bool training) {
    for (const member_pairs& of_replica : pairs_)
      for (const auto& pair : of_replica) pair->refresh();
    sinter::detail::each_part<count>([&](auto part) {
      if (training != training_) replica<part()>().train(training);
      const copy_settings copy;
      walk(nullptr, copy, replica<part()>(), original);
    });
    training_ = training;
  }
  /// Hands over to the original what the replicas' forward has changed: buffers and generators.
  void merge(const M& original, const sample_range (&cut)[sizeof...(D)], index_t samples) {
    const return_generators back;
    walk(nullptr, back, replica<0>(), original);
    for (std::size_t j = 0; j < originals_.size(); ++j) {
      bool changed = false;
      for (const member_pairs& of_replica : pairs_) changed = changed || of_replica[j]->changed();
      if (!changed) continue;
      std::vector<member_pair*> all;
      std::vector<double> weights;
      for (int i = 0; i < count; ++i) {
        if (!cut[i].runs) continue;
        all.push_back(pairs_[i][j].get());
        weights.push_back(share_of(cut[i], samples));
      }
      all.front()->merge(all, weights);
    }
  }
  static double share_of(const sample_range& cut, index_t samples) {
    return samples == 0 ? 1. : static_cast<double>(cut.size()) / static_cast<double>(samples);
  }

  /// The states of the original's parameters.
  std::vector<state_ptr> states() const {
    std::vector<state_ptr> all;
    for (const auto& pair : pairs_[0])
      if (state_ptr s = pair->original_state()) all.push_back(std::move(s));
    return all;
  }
  /// Calls f, which walks the replicas' graphs, and adds their gradients to the original's, in the order of the
  /// devices, in the pass that runs. After an error the replicas have none.
  template <class F>
  void gather_gradients(const F& f) {
    try {
      f();
      for (std::size_t j = 0; j < originals_.size(); ++j)
        for (const member_pairs& of_replica : pairs_) of_replica[j]->give_gradient();
    } catch (...) {
      for (const member_pairs& of_replica : pairs_)
        for (const auto& pair : of_replica) pair->drop_gradient();
      throw;
    }
  }

 private:
  /// The set in whose run() this thread is; null for none.
  static const replica_set*& inside_of() {
    static thread_local const replica_set* set = nullptr;
    return set;
  }
  struct inside {
    explicit inside(const replica_set* set) : before(std::exchange(inside_of(), set)) {}
    ~inside() { inside_of() = before; }
    inside(const inside&) = delete;
    inside& operator=(const inside&) = delete;
    const replica_set* before;
  };
  struct copy_settings {
    template <class To, class From>
    void operator()(const member_name&, To& to, const From& from) const {
      if constexpr (!is_stored<To> && std::is_same_v<To, From>) to = from;
    }
    template <class To, class From>
    void erased(const member_name*, To&, const From&) const {}
  };
  /// Generators are mutable members.
  struct return_generators {
    template <class From, class To>
    void operator()(const member_name&, From& from, To& to) const {
      if constexpr (std::is_same_v<From, generator> && std::is_same_v<To, generator>) {
        sinter::detail::note_before_draw(to);
        to = from;
      }
    }
    template <class To, class From>
    void erased(const member_name*, To&, const From&) const {}
  };

  std::mutex turn_;
  parts<twin_on<M, D>...> replicas_;
  sinter::detail::team team_;
  member_handles<H> originals_;
  member_pairs pairs_[sizeof...(D)];
  bool training_ = true;
};

/// Where a module keeps its Set of replicas, which its first call makes. Copies of the module have the same one while
/// their members are the same.
template <class Set>
class replica_place {
 public:
  replica_place() = default;
  replica_place(const replica_place& other) : set_(other.now()) {}
  replica_place(replica_place&& other) noexcept : set_(std::move(other.set_)) {}
  replica_place& operator=(const replica_place& other) {
    set_ = other.now();
    return *this;
  }
  replica_place& operator=(replica_place&& other) noexcept {
    set_ = std::move(other.set_);
    return *this;
  }
  ~replica_place() = default;

  template <class M>
  std::shared_ptr<Set> of(const M& module) const {
    const std::lock_guard lock(mutex_);
    if (!set_ || !set_->fits(module)) set_ = std::make_shared<Set>(module);
    return set_;
  }

 private:
  std::shared_ptr<Set> now() const {
    const std::lock_guard lock(mutex_);
    return set_;
  }
  mutable std::mutex mutex_;
  mutable std::shared_ptr<Set> set_;
};

}  // namespace sinter::nn::detail
