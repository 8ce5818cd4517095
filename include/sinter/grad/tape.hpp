// sinter/grad/tape.hpp: the tape of statements, free of element type, rank and device.
//
// Every tracked value has a grad_state; the statement that made it is its producer, which refers to the states of its
// inputs. A graph is therefore owned by the variables at its end, and lives as long as they do. States carry an order
// of creation: walking them from the newest to the oldest visits every consumer of a value before the value itself. The
// walk is in grad/walk.hpp.
#pragma once

#include <atomic>
#include <string>
#include <utility>

#include "sinter/core/error.hpp"
#include "sinter/core/owned_ptr.hpp"
#include "sinter/core/undo.hpp"
#include "sinter/grad/backward_rule.hpp"

namespace sinter {
namespace detail {

struct grad_state;
class graph_gradients;
class state_ptr;

void release_state(grad_state* s) noexcept;

class state_ptr {
 public:
  state_ptr() = default;
  explicit state_ptr(grad_state* s) noexcept : s_(s) {}
  state_ptr(const state_ptr& other) noexcept;
  state_ptr(state_ptr&& other) noexcept : s_(std::exchange(other.s_, nullptr)) {}
  state_ptr& operator=(state_ptr other) noexcept {
    std::swap(s_, other.s_);
    return *this;
  }
  ~state_ptr() {
    if (s_ != nullptr) release_state(s_);
  }
  grad_state* get() const noexcept { return s_; }
  grad_state* operator->() const noexcept { return s_; }
  grad_state& operator*() const noexcept { return *s_; }
  explicit operator bool() const noexcept { return s_ != nullptr; }

 private:
  grad_state* s_ = nullptr;
};

/// One recorded statement.
struct tape_entry {
  virtual ~tape_entry() = default;
  /// Adds to the gradients of the inputs, given the gradient that `result` holds.
  virtual void backward(grad_state& result) = 0;
  /// Frees what was saved for backward.
  virtual void release() = 0;
  virtual const state_ptr* inputs(int& count) const = 0;
  /// The same as a recorded computation; see grad(). Only statements over variables of order 2 have it. `inline` stands
  /// here, too: as the key function it would put the virtual table and the error's code into every object.
  inline virtual void backward_graph(const state_ptr& result, graph_gradients& to);
  /// For rules about backward of two entries at once.
  virtual entry_kind kind() { return {}; }
  const char* name = "";
  bool released = false;
  bool hides_inputs = false;  ///< backward may add to gradients of states that inputs() does not list
};

/// A statement of one input.
struct one_input_backward : tape_entry {
  state_ptr source;

  const state_ptr* inputs(int& count) const final {
    count = 1;
    return &source;
  }
  void release() override {}
};

/// Where the gradient of one tracked value is gathered. A pass gathers its own; at its end that of each leaf, and of
/// each result with retain_grad(), is added to what earlier passes have left for the user. So a pass that fails leaves
/// all as it was.
struct grad_state {
  virtual ~grad_state() { delete producer; }
  /// Memory of the pass's dense gradient; allocates it on first use. `add` says whether it holds a sum already.
  virtual void* gradient(bool& add) = 0;
  /// Of that memory: the axes lie in the order of the value's.
  virtual const index_t* strides() const noexcept = 0;
  virtual void drop_gradient() noexcept = 0;
  /// That memory of a gradient which is only read.
  virtual const void* gradient_to_read() const noexcept = 0;
  /// The gradient is that of another state of this type, in the same memory, until something is added to it.
  virtual void share_gradient(const grad_state& other) noexcept = 0;
  /// Adds the gradient of this pass to that of earlier passes, if there is one.
  virtual void add_to_kept() = 0;
  /// Ends the pass: the first gradient is the sum.
  virtual void keep_gradient() noexcept = 0;
  /// Memory of the dense gradient of all finished passes, null where there is no dense one.
  virtual void* kept_gradient() const noexcept = 0;
  virtual void drop_kept() noexcept = 0;
  /// A copy of what earlier passes have left, null for nothing; restore() puts it back.
  virtual storage_ptr copy_of_kept() const = 0;
  /// For a leaf in a pass that goes on: both of add_to_kept() and keep_gradient(). Returns copy_of_kept() from before.
  virtual storage_ptr settle() = 0;
  virtual void restore(const storage_ptr& before) noexcept = 0;
  /// What finished passes have left, where it is held otherwise, from now on lies in dense memory.
  virtual void make_dense() {}

  std::atomic<std::int64_t> references{1};
  std::uint64_t order = next_order();
  std::uint64_t visit = 0;  ///< number of the last backward that reached this state
  tape_entry* producer = nullptr;
  grad_state* next = nullptr;  ///< in the list of release_state, or in that of walk_back
  bool has_grad = false;       ///< of the pass that runs
  bool retain = false;
  bool producer_done = false;  ///< in this pass its producer's backward has run, with that of its only consumer
  bool has_kept = false;       ///< finished passes have left a gradient
  bool at_home = false;        ///< that lies where give_home() has put it
  bool watched = false;        ///< a pass that runs listens to it
  bool by_rows = false;        ///< a row_state, of grad/row_gradient.hpp
  bool is_shared = false;      ///< the gradient's memory may be that of another state too
  /// Where set, only a part of the gradient is written; it fills the rest with zeros. See grad/view.hpp.
  void (*fill_rest)(grad_state&) = nullptr;
  /// That part: these numbers along an axis.
  int written_axis = 0;
  std::int64_t written_begin = 0, written_end = 0;

  void complete_gradient() {
    if (fill_rest != nullptr) std::exchange(fill_rest, nullptr)(*this);
  }
  /// Whether nobody but the entries of a pass sees the gradient.
  bool is_within_pass() const { return producer != nullptr && !retain; }

  static std::uint64_t next_order() {
    static std::atomic<std::uint64_t> counter{0};
    return counter.fetch_add(1, std::memory_order_relaxed);
  }
  /// The number of a walk, by which it knows the states that it has seen.
  static std::uint64_t next_visit() {
    static std::atomic<std::uint64_t> visits{0};
    return visits.fetch_add(1) + 1;
  }
};

struct gradient_change final : change {
  gradient_change(grad_state& s, storage_ptr kept) : state(&s), before(std::move(kept)) {
    s.references.fetch_add(1, std::memory_order_relaxed);
  }
  void undo() noexcept override { state->restore(before); }
  state_ptr state;
  storage_ptr before;
};
/// Before finished passes leave another gradient.
inline void note_before_keeping(grad_state& s) {
  undo_scope* const scope = undo_scope::of_gradients();
  if (scope == nullptr || capturing() != nullptr) return;
  scope->add(make_owned<gradient_change>(s, s.copy_of_kept()));
}

inline void tape_entry::backward_graph(const state_ptr&, graph_gradients&) {
  refuse<autograd_error>({"grad: '", name, "' has no second derivative"});
}

inline state_ptr::state_ptr(const state_ptr& other) noexcept : s_(other.s_) {
  if (s_ != nullptr) s_->references.fetch_add(1, std::memory_order_relaxed);
}

/// Long chains of statements are freed in a loop: recursion as deep as the chain would overflow the stack. The states
/// that wait are their own list, as memory may be short.
SINTER_SHARED void release_state(grad_state* s) noexcept;

/// The no_grad guards alive on this thread.
inline int& no_grad_guards() {
  static thread_local int count = 0;
  return count;
}
inline bool recording() { return no_grad_guards() == 0; }

/// Does the pass that runs on this thread keep its graph? For entries that walk a graph of their own.
inline bool& graph_is_retained() {
  static thread_local bool retained = false;
  return retained;
}

/// Whether the value was made by an entry, has one consumer, and nobody else reads it or asks for its gradient.
inline bool has_one_consumer(const state_ptr& s) {
  return s && s->references.load(std::memory_order_relaxed) == 1 && s->producer != nullptr && !s->producer->released &&
         !s->has_grad && !s->retain;
}

/// Makes the gradients of the inputs of y's producer: by a rule where one applies, else by the producer's own backward.
inline void run_backward(grad_state& y) {
  tape_entry& consumer = *y.producer;
  const entry_kind kind = consumer.kind();
  if (kind.rules != nullptr && kind.rules->first.load(std::memory_order_relaxed) != nullptr) {
    int count = 0;
    const state_ptr* inputs = consumer.inputs(count);
    for (int i = 0; i < count; ++i)
      if (has_one_consumer(inputs[i]) && run_rules(inputs[i]->producer->kind(), *inputs[i], kind, i, y)) return;
  }
  consumer.backward(y);
}

/// States that release_state is about to delete on this thread; null where it does not run.
inline thread_local constinit grad_state** states_to_delete = nullptr;

#if SINTER_DEFINES

SINTER_SHARED void release_state(grad_state* s) noexcept {
  if (s->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  grad_state**& waiting = states_to_delete;
  if (waiting != nullptr) {
    s->next = std::exchange(*waiting, s);
    return;
  }
  grad_state* list = s;
  s->next = nullptr;
  waiting = &list;
  while (list != nullptr) delete std::exchange(list, list->next);
  waiting = nullptr;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// While one is alive, statements on this thread are not recorded: their results carry no graph. Guards may nest, and
/// end in any order, on the thread that made them.
///
///     { no_grad guard; accuracy = evaluate(model, test_set); }
class [[nodiscard]] no_grad {
 public:
  [[nodiscard]] no_grad() { ++detail::no_grad_guards(); }
  ~no_grad() { --detail::no_grad_guards(); }
  no_grad(const no_grad&) = delete;
  no_grad& operator=(const no_grad&) = delete;
};

}  // namespace sinter
