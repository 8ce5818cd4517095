// sinter/grad/walk.hpp: the walk of backward over the tape.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "sinter/core/work_log.hpp"
#include "sinter/expr/independent.hpp"
#include "sinter/grad/listener.hpp"
#include "sinter/grad/tape.hpp"

namespace sinter::detail {

/// A pass on this thread: the states that it has still to visit. An entry that makes a graph anew to walk it, as that
/// of checkpoint() does, runs a pass inside: states that were there before the graph belong to the pass around.
struct running_pass {
  std::vector<state_ptr> heap;  ///< the newest first
  std::uint64_t visit;          ///< its number
  std::uint64_t first_order;    ///< that of the oldest state that is its own
  running_pass* around;
  listened_leaves* listener = nullptr;  ///< null where nobody listens
  std::uint64_t now = 0;                ///< order of the state that it works on

  static running_pass*& current() {
    static thread_local running_pass* pass = nullptr;
    return pass;
  }
  static bool older(const state_ptr& a, const state_ptr& b) { return a->order < b->order; }

  void push(const state_ptr& s);
  state_ptr pop();
  /// A state that was there before the graph which this pass's entry has made anew. Errors: autograd_error if it was
  /// made after the entry itself.
  void take_over(const state_ptr& s);
  /// For an entry that does not list a leaf as an input: its result has this order, and it will add to the leaf's
  /// gradient.
  static void note_late_use(grad_state& leaf, std::uint64_t order);
  /// A pass inside another one is about to end with a gradient of a leaf that the other has told to be complete.
  void check_told(const grad_state& leaf) const;
};

/// Runs the graph behind `root`, whose gradient is set. With first_order a pass inside that of this thread: states
/// older than it are left to that one, with what this pass adds to their gradients. The listener may be null.
SINTER_SHARED void walk_back(const state_ptr& root, bool retain_graph, std::uint64_t first_order = 0,
                             listened_leaves* listener = nullptr);

#if SINTER_DEFINES

inline void running_pass::push(const state_ptr& s) {
  if (!s) return;
  if (s->order < first_order) return around->take_over(s);
  if (s->visit == visit) return;
  s->visit = visit;
  heap.push_back(s);
  std::push_heap(heap.begin(), heap.end(), older);
}
inline state_ptr running_pass::pop() {
  std::pop_heap(heap.begin(), heap.end(), older);
  state_ptr newest = std::move(heap.back());
  heap.pop_back();
  return newest;
}
SINTER_SHARED void running_pass::take_over(const state_ptr& s) {
  if (s->order > now)
    refuse<autograd_error>(
        {"backward: a function that runs again uses a variable that was made after its call; "
         "it must use what it used then"});
  if (listener != nullptr) listener->reach(*s, now);
  push(s);
}
SINTER_SHARED void running_pass::note_late_use(grad_state& leaf, std::uint64_t order) {
  if (!leaf.watched) return;
  for (running_pass* p = current(); p != nullptr; p = p->around)
    if (p->listener != nullptr) p->listener->use(leaf, order);
}
inline void running_pass::check_told(const grad_state& leaf) const {
  if (!leaf.watched) return;
  for (const running_pass* p = around; p != nullptr; p = p->around)
    if (p->listener != nullptr && p->listener->has_told(leaf))
      refuse<autograd_error>(
          {"backward: a pass inside another one adds to the gradient of a leaf, which the listener of the other was "
           "told to be complete; use the leaf in the graph of the other, or do not listen to it"});
}

SINTER_SHARED void walk_back(const state_ptr& root, bool retain_graph, std::uint64_t first_order,
                             listened_leaves* listener) {
  // After an error no gradient of this pass may be left: the next would count it again, and some may be memory that
  // nothing was written to.
  struct guard : running_pass {
    grad_state* finished = nullptr;  ///< those whose gradient is complete, to be kept; the graph holds them
    state_ptr at;
    bool done = false;
    running_pass* before;
    explicit guard(std::uint64_t first)
        : running_pass{{}, grad_state::next_visit(), first, current()}, before(std::exchange(current(), this)) {}
    static void forget(grad_state& s) {
      s.drop_gradient();
      if (std::exchange(s.producer_done, false)) forget_inputs(s);
    }
    static void forget_inputs(grad_state& s) {
      int count = 0;
      const state_ptr* inputs = s.producer->inputs(count);
      for (int i = 0; i < count; ++i)
        if (inputs[i]) forget(*inputs[i]);
    }
    ~guard() {
      current() = before;
      if (done) return;
      if (listener != nullptr) listener->fail();
      for (const state_ptr& s : heap) forget(*s);
      for (grad_state* s = finished; s != nullptr; s = s->next) s->drop_gradient();
      if (!at) return;
      forget(*at);
      if (at->producer != nullptr) forget_inputs(*at);
    }
  } pass(first_order);
  pass.push(root);
  if (listener != nullptr) {
    listener->begin(*root, pass.visit);
    pass.listener = listener;
  }
  while (!pass.heap.empty()) {
    if (listener != nullptr) listener->tell_before(pass.heap.front()->order);
    pass.at = pass.pop();
    const state_ptr& s = pass.at;
    pass.now = s->order;
    if (!(s->has_grad || s->producer_done)) continue;
    s->complete_gradient();
    if (s->has_grad && (s->retain || s->producer == nullptr) && !(listener != nullptr && listener->keeps(*s)))
      s->next = std::exchange(pass.finished, s.get());
    if (s->producer == nullptr) continue;
    tape_entry& node = *s->producer;
    int count = 0;
    const state_ptr* inputs = node.inputs(count);
    if (node.released)
      refuse<autograd_error>({"backward: the graph through '", node.name,
                              "' was freed by an earlier backward; pass {.retain_graph = true} to the earlier one"});
    if (!s->producer_done) {
      graph_is_retained() = retain_graph;  // an entry may have walked another graph
      const logged_work work("backward", {node.name}, nullptr, 0);
      run_backward(*s);
    }
    for (int i = 0; i < count; ++i) pass.push(inputs[i]);
    s->producer_done = false;
    if (!s->retain) s->drop_gradient();
    if (!retain_graph) {
      node.released = true;
      node.release();
    }
  }
  if (listener != nullptr) listener->tell_rest();
  for (const grad_state* s = pass.finished; s != nullptr; s = s->next) pass.check_told(*s);
  if (listener != nullptr) listener->note_changes();
  for (grad_state* s = pass.finished; s != nullptr; s = s->next) note_before_keeping(*s);
  independent_passes sums;
  for (grad_state* s = pass.finished; s != nullptr; s = s->next) s->add_to_kept();
  sums.run();
  for (grad_state* s = pass.finished; s != nullptr; s = s->next) s->keep_gradient();
  pass.done = true;
  if (listener != nullptr) listener->end();
}

#endif  // SINTER_DEFINES

}  // namespace sinter::detail
