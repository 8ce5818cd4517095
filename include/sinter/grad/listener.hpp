// sinter/grad/listener.hpp: functions that a backward pass calls as soon as the gradient of a leaf is complete.
//
// Leaves are older than all statements, so the walk comes to them last, long after their gradients are complete. A walk
// from the root before the pass finds the oldest state whose producer reads each leaf (its last use). The pass visits
// states from the newest to the oldest, so the gradient of a leaf is complete when the next state to visit is older
// than the last use. Nothing is counted: states that get no gradient are skipped without harm.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <stdexcept>
#include <vector>

#include "sinter/core/address_map.hpp"
#include "sinter/core/capture.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/tensor.hpp"
#include "sinter/grad/tape.hpp"

namespace sinter {

// Names in messages.
template <class>
struct listener_of_what_has_no_gradient;
struct add_a_variable;

namespace detail {

/// The leaves that one pass at a time tells of.
class listened_leaves {
 public:
  listened_leaves();
  listened_leaves(const listened_leaves&) = delete;
  listened_leaves& operator=(const listened_leaves&) = delete;
  ~listened_leaves();

  /// False if the leaf is there already. Errors: autograd_error while a pass runs.
  bool add(const state_ptr& state, std::function<void()> ready, std::function<void()> unused);
  std::size_t size() const noexcept;

  /// Before a pass from `root` with this number: finds last uses, and tells of leaves that it cannot reach. Errors:
  /// autograd_error for a leaf that another pass listens to.
  void begin(grad_state& root, std::uint64_t pass);
  /// A state that is read by the producer of one with this order, also where that does not list it. Errors:
  /// autograd_error if a leaf behind it was told to be complete.
  void reach(grad_state& from, std::uint64_t used_by);
  /// The producer of a state with this order will add to the gradient of a leaf.
  void use(grad_state& s, std::uint64_t by);
  /// Whether it is the listener that keeps the gradient of a leaf that the pass visits.
  bool keeps(const grad_state& s) const;
  bool has_told(const grad_state& s) const;

  /// The pass will next visit a state with this order.
  void tell_before(std::uint64_t order);
  /// The pass has no state left to visit.
  void tell_rest();

  /// Before the pass ends well.
  void note_changes() const;
  /// Throws what a function has thrown.
  void end();
  /// The pass has failed: gradients are as they were before it.
  void fail() noexcept;

 private:
  struct leaf {
    state_ptr state;
    std::function<void()> ready, unused;
    std::uint64_t last_use = 0;  ///< order of the oldest state whose producer reads it
    storage_ptr before{};        ///< the gradient of earlier passes
    bool reached = false, told = false, settled = false;
  };
  using place_in_queue = std::pair<std::uint64_t, std::size_t>;  ///< last use when it was queued, number of the leaf
  static constexpr std::uint64_t newest = std::numeric_limits<std::uint64_t>::max();

  /// Leaves of one last use come in the order in which they were added.
  static bool comes_later(const place_in_queue& a, const place_in_queue& b);
  /// True for the first time. What the pass itself has visited was looked at before.
  bool see(grad_state& s) const;
  /// Finds the uses of leaves behind a state that is no leaf.
  void look_behind(grad_state& from);
  void tell(leaf& l);
  void stop() noexcept;
  [[noreturn]] static void refuse_late_gradient();

  std::vector<leaf> leaves_;
  address_map place_;                  ///< where in leaves_ a state is
  std::vector<place_in_queue> queue_;  ///< a heap of the leaves that were not told
  std::vector<grad_state*> to_see_;
  /// Order of the oldest state that can be reached and whose producer does not list all that it reads. Until the pass
  /// has visited it, it may add to the gradient of any leaf.
  std::uint64_t oldest_hiding_ = newest;
  std::uint64_t number_ = 0, pass_ = 0;
  bool runs_ = false;
  std::exception_ptr failure_;
};

#if SINTER_DEFINES

SINTER_SHARED listened_leaves::listened_leaves() = default;
SINTER_SHARED listened_leaves::~listened_leaves() = default;

SINTER_SHARED bool listened_leaves::add(const state_ptr& state, std::function<void()> ready,
                                        std::function<void()> unused) {
  if (runs_) refuse<autograd_error>({"gradient_listener: add() while a pass tells it; add leaves before or after"});
  if (!place_.emplace(state.get(), static_cast<int>(leaves_.size())).second) return false;
  leaves_.push_back({state, std::move(ready), std::move(unused)});
  return true;
}
SINTER_SHARED std::size_t listened_leaves::size() const noexcept { return leaves_.size(); }

SINTER_SHARED void listened_leaves::reach(grad_state& from, std::uint64_t used_by) {
  if (from.producer == nullptr) use(from, used_by);
  else if (see(from)) look_behind(from);
}
SINTER_SHARED void listened_leaves::use(grad_state& s, std::uint64_t by) {
  if (!s.watched) return;
  const auto at = place_.find(&s);
  if (at == place_.end()) return;
  leaf& l = leaves_[static_cast<std::size_t>(at->second)];
  if (l.told) refuse_late_gradient();
  l.reached = true;
  l.last_use = std::min(l.last_use, by);
}
SINTER_SHARED bool listened_leaves::keeps(const grad_state& s) const {
  if (!s.watched || place_.count(&s) == 0) return false;
  if (has_told(s)) throw std::logic_error("sinter: a gradient that a listener was told to be complete was not");
  return true;
}
SINTER_SHARED bool listened_leaves::has_told(const grad_state& s) const {
  const auto at = place_.find(&s);
  return at != place_.end() && leaves_[static_cast<std::size_t>(at->second)].told;
}

SINTER_SHARED void listened_leaves::tell_before(std::uint64_t order) {
  while (!queue_.empty()) {
    const auto [use, i] = queue_.front();
    leaf& l = leaves_[i];
    const bool is_stale = l.last_use < use;
    if (!is_stale && std::min(use, oldest_hiding_) <= order) return;
    std::pop_heap(queue_.begin(), queue_.end(), comes_later);
    if (is_stale) {
      queue_.back().first = l.last_use;
      std::push_heap(queue_.begin(), queue_.end(), comes_later);
    } else {
      queue_.pop_back();
      tell(l);
    }
  }
}
SINTER_SHARED void listened_leaves::tell_rest() {
  for (leaf& l : leaves_) l.last_use = newest;
  oldest_hiding_ = newest;
  tell_before(0);
}

SINTER_SHARED void listened_leaves::note_changes() const {
  undo_scope* const scope = undo_scope::of_gradients();
  if (scope == nullptr) return;
  for (const leaf& l : leaves_)
    if (l.settled) scope->add(make_owned<gradient_change>(*l.state, l.before));
}
SINTER_SHARED void listened_leaves::end() {
  stop();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}
SINTER_SHARED void listened_leaves::fail() noexcept {
  for (leaf& l : leaves_) {
    if (l.settled) l.state->restore(l.before);
    else if (l.reached) l.state->drop_gradient();
  }
  failure_ = nullptr;
  stop();
}

inline bool listened_leaves::comes_later(const place_in_queue& a, const place_in_queue& b) {
  return a.first != b.first ? a.first < b.first : a.second > b.second;
}
inline bool listened_leaves::see(grad_state& s) const {
  if (s.visit == number_ || s.visit == pass_) return false;
  s.visit = number_;
  return true;
}
SINTER_SHARED void listened_leaves::tell(leaf& l) {
  l.told = true;
  if (l.reached && l.state->has_grad) {
    l.before = l.state->settle();
    l.settled = true;
  }
  const std::function<void()>& f = l.reached ? l.ready : l.unused;
  if (!f) return;
  try {
    f();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
  }
}
SINTER_SHARED void listened_leaves::stop() noexcept {
  runs_ = false;
  queue_.clear();
  to_see_.clear();
  for (leaf& l : leaves_) {
    l.state->watched = false;
    l.before = {};
  }
}
SINTER_SHARED_COLD void listened_leaves::refuse_late_gradient() {
  refuse<autograd_error>(
      {"backward: a module that runs again uses a variable that is not among its parameters, and whose gradient the "
       "listener was told to be complete; make it a parameter, or give checkpoint() a function that captures it"});
}

SINTER_SHARED void listened_leaves::begin(grad_state& root, std::uint64_t pass) {
  refuse_capture("backward with a listener",
                 "its functions would be called once, and not in each replay; pass no listener");
  for (const leaf& l : leaves_)
    if (l.state->watched)
      refuse<autograd_error>(
          {"backward: a pass that is under way listens to one of these leaves already; give each "
           "pass a listener of its own leaves"});
  pass_ = pass;
  number_ = grad_state::next_visit();
  oldest_hiding_ = newest;
  failure_ = nullptr;
  for (leaf& l : leaves_) {
    l.state->watched = true;
    l.last_use = newest;
    l.reached = l.told = l.settled = false;
  }
  try {
    if (root.producer == nullptr) use(root, newest);
    else look_behind(root);
    for (std::size_t i = 0; i < leaves_.size(); ++i)
      if (leaves_[i].reached || oldest_hiding_ != newest) queue_.push_back({leaves_[i].last_use, i});
  } catch (...) {
    stop();
    throw;
  }
  std::make_heap(queue_.begin(), queue_.end(), comes_later);
  runs_ = true;
  if (oldest_hiding_ != newest) return;
  for (leaf& l : leaves_)
    if (!l.reached) tell(l);
}

SINTER_SHARED void listened_leaves::look_behind(grad_state& from) {
  to_see_.push_back(&from);
  while (!to_see_.empty()) {
    const grad_state& s = *to_see_.back();
    to_see_.pop_back();
    if (s.producer->hides_inputs) oldest_hiding_ = std::min(oldest_hiding_, s.order);
    int count = 0;
    const state_ptr* inputs = s.producer->inputs(count);
    for (int i = 0; i < count; ++i) {
      if (!inputs[i]) continue;
      if (inputs[i]->producer == nullptr) use(*inputs[i], s.order);
      else if (see(*inputs[i])) to_see_.push_back(inputs[i].get());
    }
  }
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Leaves, and functions that a backward pass calls as soon as it has made the gradient of one. That is before the pass
/// ends: while it is still on its way to the first layers, the gradients of the last ones can be sent away, or used up
/// by a step and freed.
///
///     gradient_listener listener;
///     listener.add(w, [&] { std::cout << "w has its gradient: " << w.grad() << '\n'; });
///     loss.backward(listener);
///
/// `ready` is called once in each pass from which the leaf can be reached, when the pass will add nothing more:
/// has_grad() and grad() are then as they will be after it, with what earlier passes have added. There may be no
/// gradient if none has come through. `unused` is called for the other leaves, before the pass begins; where a
/// checkpoint() of a function may still use the leaf, as soon as none can. Leaves of one pass come in the same order
/// whenever the same statements were recorded.
///
/// The functions are called on the thread of the pass. They may write to the leaf's value, and zero its gradient. What
/// one throws does not disturb the pass: the others are called, and backward() throws the first of these errors when it
/// has ended. A pass that fails itself leaves gradients as they were, also those that were told.
///
/// One listener serves many passes, one at a time, and only those that it is given to. A pass inside another, as a
/// function of with_gradient() may run one, has its own. Passes that are captured for a GPU take none. Source: the
/// hooks of Li et al., "PyTorch Distributed: experiences on accelerating data parallel training", VLDB 2020.
class gradient_listener {
 public:
  gradient_listener() = default;
  gradient_listener(const gradient_listener&) = delete;
  gradient_listener& operator=(const gradient_listener&) = delete;

  /// Listens to a leaf. False if it is there already, as a tied weight is: the first functions stay. Errors:
  /// autograd_error for the result of a statement, for an empty variable, and while a pass runs.
  template <class T, auto S, device D, int Order>
  bool add(const variable<T, S, D, Order>& leaf, std::function<void()> ready, std::function<void()> unused = {}) {
    const detail::state_ptr& state = detail::access::state_of(leaf);
    if (!state || state->producer != nullptr)
      detail::refuse<autograd_error>({"gradient_listener: a variable of shape ", leaf.shape(), " is ",
                                      !state ? "empty or was computed under no_grad" : "the result of a statement",
                                      "; add leaves"});
    return leaves_.add(state, std::move(ready), std::move(unused));
  }
  template <class X, class Problem = listener_of_what_has_no_gradient<X>, class Fix = add_a_variable>
  bool add(const X&, std::function<void()>, std::function<void()> = {}) = delete;

  /// Number of leaves.
  std::size_t size() const noexcept { return leaves_.size(); }

 private:
  template <class, auto, device, int>
  friend class variable;

  detail::listened_leaves leaves_;
};

}  // namespace sinter
