// sinter/expr/evaluate.hpp: running a statement: `tensor y = e`, `y = e`, `y += e`, eval(e).
#pragma once

#include <algorithm>
#include <exception>

#include "sinter/core/undo.hpp"
#include "sinter/expr/formula.hpp"
#include "sinter/expr/point.hpp"

namespace sinter {

namespace detail {

/// e with every point replaced by its result; the rest is one elementwise pass.
template <class E>
decltype(auto) materialise(const E& e) {
  return replace_points(e, [](const auto& point) -> decltype(auto) { return point.result(); });
}

template <class T, auto S, device D>
sink_ref sink_of(const tensor<T, S, D>& to) {
  sink_ref out;
  out.data = access::data(to);
  out.element_size = sizeof(T);
  for (int d = 0; d < to.rank; ++d) out.strides[d] = to.strides()[d];
  return out;
}

/// The strides of a dense result of e, which holds no points: its axes lie in memory as those of its operands do.
template <class E>
extents<rank_of<E>> result_strides(const E& e) {
  constexpr int R = rank_of<E>;
  if constexpr (R >= 2 && leaves_of<E>::count > 0) {
    const leaves_of<E> leaves(e);
    extents<R> strides;
    follow_operands({e.shape().data(), R}, leaves, leaves.count, strides.values);
    return strides;
  } else {
    return row_major_strides(e.shape());
  }
}
/// New memory for its value.
template <class E, class D = device_of<E>>
auto new_result(const E& e) {
  return tensor<element_of<E>, rank_of<E>, D>::uninitialized(e.shape(), result_strides(e));
}

/// Writes e, which holds no points, to `to`, a view or tensor that e broadcasts to.
template <class E, class T, auto S, device D>
void write(const E& e, const tensor<T, S, D>& to) {
  static_assert(std::is_same_v<T, element_of<E>>);
  const auto plan = plan_of<false>(e);
  write_formula_to(formula_of<E, D, tensor<T, S, D>::rank>(), &plan, leaves_of<E>(e), leaf_of(to));
}

template <class E, class T, auto S, device D>
bool needs_temporary(const E& e, const tensor<T, S, D>& to) {
  return clashes(leaves_of<E>(e), leaves_of<E>::count, leaf_of(to));
}

/// The value of a formula in new memory. As a call it costs a statement of 16 elements 2 to 5 %.
template <class T, int R, device D>
SINTER_INLINE tensor<T, R, D> new_value(const formula& f, const void* plan, const extents<R>& shape,
                                        const leaf_ref* leaves) {
  extents<R> strides;
  storage_ptr memory = run_formula(f, plan, {shape.data(), R}, leaves, strides.values);
  T* const data = static_cast<T*>(memory->data);
  return access::make<T, R, D>(std::move(memory), data, shape, strides);
}
/// The value of e, which holds no points, in new memory; `leaves` are those of e.
template <class E>
auto value_of_formula(const E& e, const leaf_ref* leaves) {
  const auto plan = plan_of<false>(e);
  return new_value<element_of<E>, rank_of<E>, device_of<E>>(formula_of<E>(), &plan, e.shape(), leaves);
}

/// How a finished value enters the graph; defined in grad/statement.hpp for tracked expressions.
template <class Ready, class Value, class... Kept>
auto record(const Ready& ready, const Value& value, const Kept&... kept);

/// Number of leaves that come before the first point of E.
template <class E>
struct leaves_before_point {
  static constexpr int value = 0;
};
template <class Op, class A, class... Rest>
struct leaves_before_point<map_expr<Op, A, Rest...>> {
  template <class First, class... Others>
  static constexpr int count() {
    if constexpr (points_in<First> > 0) return leaves_before_point<First>::value;
    else if constexpr (sizeof...(Others) > 0) return lowered<false, First>::leaves + count<Others...>();
    else return 0;
  }
  static constexpr int value = count<A, Rest...>();
};

/// Point -> a value of its result type; for decltype.
struct result_type_of_point {
  template <class P>
  typename P::result_type operator()(const P&) const;
};

/// E with the value of its one point in place of that.
template <class E>
using with_result_of_point = bare<decltype(replace_points(std::declval<const E&>(), result_type_of_point{}))>;

template <class E>
constexpr bool point_takes_rest() {
  if constexpr (is_point<E> || outer_points<E> != 1 || E::order >= 2) {
    return false;
  } else {
    using P = bare<decltype(point_of(std::declval<const E&>()))>;
    return P::takes_epilogue && P::rank == E::rank && std::is_same_v<element_of<P>, element_of<E>>;
  }
}

/// May the elementwise rest of E run inside the kernel of its one point P, in the memory of the result? When tracked,
/// only if no derivative asks for P's bare value, which is then never stored; derivatives as expressions always do.
template <class E>
constexpr bool can_fuse_into_point() {
  if constexpr (!point_takes_rest<E>()) return false;
  else if constexpr (!is_tracked_v<E>) return true;
  else return !reverse_reads_leaf<with_result_of_point<E>>(leaves_before_point<E>::value);
}

/// Or may it where the kernel stores beside the result what the derivative asks for? Some kernel for D can, for some
/// shapes.
template <class E>
constexpr bool can_keep_input() {
  if constexpr (!is_tracked_v<E> || !point_takes_rest<E>() || can_fuse_into_point<E>()) return false;
  else if constexpr (!requires { requires bare<decltype(point_of(std::declval<const E&>()))>::keeps_input; })
    return false;
  else if constexpr (requires { backend<device_of<E>>::template keeps_input<lowered<false, with_result_of_point<E>>>; })
    return backend<device_of<E>>::template keeps_input<lowered<false, with_result_of_point<E>>>;
  else return false;
}

/// What an expression evaluates to: a tensor, or a variable when it is tracked. Known without evaluating anything. For
/// other types there is none, and no error: clang asks for it before it checks the constraints of a function.
template <class E>
struct evaluated_type;
template <expression E>
struct evaluated_type<E> {
  using type = typename result_of_point<element_of<E>, rank_of<E>, device_of<E>, E::order>::type;
};
template <expression E>
  requires(is_tensor<E> || is_variable<E>)
struct evaluated_type<E> {
  using type = E;
};
template <class E>
using evaluated = typename evaluated_type<bare<E>>::type;

/// The value of `ready`, a tracked expression without points, with its place in the graph (grad/statement.hpp).
template <class Ready>
evaluated<Ready> run_recorded(const Ready& ready);

template <int Order, class T, int R, device D>
variable<T, R, D, Order> unrecorded(const tensor<T, R, D>& value);  // grad/statement.hpp

/// e with its one point in the graph, as `value`.
template <class E, class Value, class Saved>
auto recorded_points(const E& e, const Value& value, const Saved& saved) {
  return replace_points(e, [&](const auto& p) {
    if constexpr (is_tracked_v<decltype(p)>) return record_point(p, value, saved);
    else return value;
  });
}

/// Evaluates e inside the kernel of its only point. With can_keep_input() it returns an undefined tensor if the backend
/// cannot also store the pre-activation; the caller then evaluates unfused.
template <class E>
evaluated<E> run_fused(const E& e) {
  const auto& point = point_of(e);
  using D = device_of<E>;
  using T = element_of<E>;
  const auto value = new_value_of(point);
  // The formula after the point, over the place where its value goes; recorded once the kernel has run.
  const auto after = replace_points(e, [&](const auto& p) {
    if constexpr (is_tracked_v<decltype(p)>) return unrecorded<bare<decltype(p)>::order>(value);
    else if constexpr (is_cpu_v<D> && is_by_rows<bare<decltype(p)>>)
      return made_value(value);  // a GPU has the row in registers
    else return value;
  });
  using K = lowered<false, bare<decltype(after)>>;
  const leaves_of<bare<decltype(after)>> leaves(after);
  const K plan = lower<false>(after);
  typename backend<D>::template fused_epilogue<T, K, rank_of<E>> epilogue(plan, shape_upto<rank_of<E>>(value.shape()),
                                                                          leaves, sink_of(value));
  [[maybe_unused]] storage_ptr kept;
  if constexpr (is_tracked_v<E> && requires {
                  epilogue.kept;
                  requires bare<decltype(point)>::keeps_input;
                }) {
    const bool point_has_state = point.is_recorded();
    if (point_has_state) epilogue.kept = &kept;
    epilogue.must_keep = can_keep_input<E>();
    if (epilogue.must_keep && !point_has_state) return {};
    [[maybe_unused]] const auto saved = compute_point(point, value, &epilogue);
    if (epilogue.must_keep && !kept) return {};
    return record(recorded_points(e, value, saved), value, kept);
  } else {
    [[maybe_unused]] const auto saved = compute_point(point, value, &epilogue);
    if constexpr (is_tracked_v<E>) return record(recorded_points(e, value, saved), value);
    else return value;
  }
}

/// Evaluates e, which is no point itself. `last_use`: no other expression refers to e's points.
template <class E>
evaluated<E> run_statement(const E& e, bool last_use) {
  if constexpr (can_fuse_into_point<E>()) {
    const auto& point = point_of(e);
    if (last_use && point.exclusive() && point.ready_for_epilogue() && point.shape() == e.shape()) return run_fused(e);
  } else if constexpr (can_keep_input<E>()) {
    const auto& point = point_of(e);
    if (last_use && recording() && point.exclusive() && point.shape() == e.shape())
      if (auto y = run_fused(e); y.defined()) return y;
  }
  check_defined("evaluate", e);
  auto&& ready = materialise(e);
  if constexpr (is_tracked_v<E>) return run_recorded(ready);
  else return value_of_formula(ready, leaves_of<bare<decltype(ready)>>(ready));
}
/// The same of a statement that is_stock.
template <class E>
evaluated<E> run_stock_statement(const E& e, bool last_use);

template <class E>
struct evaluation {
  /// `last_use`: no other expression refers to e's points.
  static evaluated<E> run(const E& e, bool last_use = true) {
    static_cast<void>(sizeof(runs_in_this_file<device_of<E>>));
    if constexpr (is_point<E>) {
      // What others will read again from the slot must not change with the value that is handed out.
      if constexpr (is_tracked_v<E>) return typename E::result_type(e.result());
      else return last_use && e.only_owner() ? e.result() : e.result().clone();
    } else {
      if constexpr (is_stock<E>) return run_stock_statement(e, last_use);
      else return run_statement(e, last_use);
    }
  }
  /// The variable that shows `value`, a copy of the variable e, with e as its source.
  template <class Value>
  static E copied(const E& e, const Value& value) {
    return record(e, value);
  }
  /// Copies the tensor e into `value`.
  static E run_into(const E& e, const E& value) {
    static_cast<void>(sizeof(runs_in_this_file<device_of<E>>));
    write(e, value);
    return value;
  }
};

}  // namespace detail

/// Runs the expression and returns its value: a tensor, or a variable when a variable is among its leaves.
template <expression E>
detail::evaluated<E> eval(E&& e) {
  using X = detail::bare<E>;
  if constexpr (detail::is_tensor<X> || detail::is_variable<X>) return X(std::forward<E>(e));
  else return detail::evaluation<X>::run(e, !std::is_lvalue_reference_v<E>);
}
template <class E, class Problem = typename detail::no_operands<E>::problem,
          class Fix = typename detail::no_operands<E>::fix>
void eval(E&&) = delete;

namespace detail {

/// The value of e for reading: a point's is shared with its slot.
template <class E>
evaluated<E> eval_to_read(E&& e) {
  using X = bare<E>;
  if constexpr (is_point<X>) return typename X::result_type(e.result());
  else return eval(std::forward<E>(e));
}

/// Does a value of this shape fit what is written?
SINTER_SHARED void check_assigned_shape(const char* op, const leaf_ref& to, shape_piece from);
template <class Y, class E>
void check_assignable(const char* op, const Y& y, const E& e) {
  check_defined(op, y);
  check_defined(op, e);
  check_assigned_shape(op, leaf_of(y), {e.shape().data(), E::rank});
}

#if SINTER_DEFINES
/// Does a view show an element more than once, as those of broadcast_to() and of overlapping windows do? Of views of
/// dense tensors: an axis of a larger stride then begins within the reach of those of smaller strides.
inline bool repeats_elements(const leaf_ref& to) {
  index_t strides[max_rank], counts[max_rank];
  int n = 0;
  for (int d = 0; d < to.rank; ++d) {
    if (to.shape[d] <= 1) continue;
    const index_t stride = to.strides[d] < 0 ? -to.strides[d] : to.strides[d];
    int at = n++;
    for (; at > 0 && strides[at - 1] > stride; --at) {
      strides[at] = strides[at - 1];
      counts[at] = counts[at - 1];
    }
    strides[at] = stride;
    counts[at] = to.shape[d];
  }
  index_t reach = 0;
  for (int i = 0; i < n; ++i) {
    if (strides[i] <= reach) return true;
    reach += (counts[i] - 1) * strides[i];
  }
  return false;
}

SINTER_SHARED void check_assigned_shape(const char* op, const leaf_ref& to, shape_piece from) {
  const auto is_shape_of_to = [&to](const index_t* shape) { return std::equal(shape, shape + to.rank, to.shape); };
  if (from.rank != to.rank || !is_shape_of_to(from.extents)) {
    index_t merged[max_rank];
    std::copy_n(to.shape, to.rank, merged);
    if (from.rank > to.rank || !broadcast_into(merged, to.rank, from.extents, from.rank) || !is_shape_of_to(merged))
      refuse<shape_error>(
          {op, ": shape ", from, " does not broadcast to the destination's ", shape_piece{to.shape, to.rank}});
  }
  if (!has_no_elements(to) && repeats_elements(to))
    refuse<shape_error>({op,
                         ": the destination is a broadcast view, or one of windows that overlap; its elements "
                         "repeat. Write to a clone() instead"});
}
#endif  // SINTER_DEFINES

/// Writes e into y's storage.
template <class Y, class E>
void write_statement(const Y& y, const E& e) {
  using D = device_of<Y>;
  auto&& ready = materialise(e);
  using Ready = bare<decltype(ready)>;
  note_before_write<D>(access::storage_of(y));
  const auto plan = plan_of<false>(ready);
  assign_formula(formula_of<Ready, D, Y::rank>(), &plan, {ready.shape().data(), rank_of<Ready>},
                 leaves_of<Ready>(ready), leaf_of(y));
  note_write(*access::storage_of(y).get());
}
/// The same of an assignment that is_stock.
template <class Y, class E>
void write_stock_statement(const Y& y, const E& e);
template <class Y, class E>
void assign_into(const Y& y, const E& e) {
  if constexpr (is_stock<assignment<const Y&, E>>) write_stock_statement(y, e);
  else write_statement(y, e);
}

#if SINTER_STOCK_PART
template <class Point>
void compute_stock_slot(const Point& node) {
  compute_slot(node);
}
template <class E>
evaluated<E> run_stock_statement(const E& e, bool last_use) {
  return run_statement(e, last_use);
}
template <class Y, class E>
void write_stock_statement(const Y& y, const E& e) {
  write_statement(y, e);
}
template <class E>
struct stock_functions {
  static auto function() {
    if constexpr (is_point<E>) return &compute_stock_slot<E>;
    else return &run_stock_statement<E>;
  }
};
template <class Y, class E>
struct stock_functions<assignment<const Y&, E>> {
  static auto function() { return &write_stock_statement<Y, E>; }
};
#endif

/// True if the value of e may overwrite that of y: both lie in memory alike, and no other handle shows the old value.
/// Beside y, the statement itself has `handles` of it.
template <class Y, class E>
bool is_replaceable(const Y& y, const E& e, std::int64_t handles) {
  const storage_ptr& s = access::storage_of(y);
  return s.use_count() == 1 + handles && !s->borrowed && y.shape() == e.shape() &&
         are_same_strides(y.shape(), y.strides(), result_strides(e));
}

[[noreturn]] SINTER_COLD inline void refuse_late_assignment(const char* what) {
  refuse<value_error>({"assignment: ", what,
                       " before the assignment ran. It runs where its object ends, usually at the semicolon; "
                       "write `x = e;` or `tensor y = (x = e);`, and keep no `auto s = (x = e);`"});
}

}  // namespace detail

/// An assignment that has not run: `x = e` or `x += e`. It runs when its object ends, which is at the end of the
/// statement, unless fuse() takes it over, and earlier where its value is asked for: it converts to the tensor on the
/// left side, as an assignment to any value does. Target is `tensor&` for a named tensor that gets a new value, `const
/// tensor&` for a named tensor whose memory is written (`x += e`), and `tensor` for a view, whose memory is written.
/// Errors: those of e and of the shapes; value_error if the object outlives its statement and the target was written or
/// given other memory meanwhile.
template <class Target, class E>
class assignment {
 public:
  using tensor_type = detail::bare<Target>;
  static constexpr bool is_named = std::is_reference_v<Target>;
  static constexpr bool rebinds = is_named && !std::is_const_v<std::remove_reference_t<Target>>;

  template <class X>
  assignment(tensor_type& target, X&& e)
      : target_(target),
        e_(std::forward<X>(e)),
        entry_(is_named ? &target : nullptr, detail::access::storage_of(target)),
        exceptions_(std::uncaught_exceptions()) {
    if constexpr (!rebinds) detail::check_assignable("assignment", target_, e_);
  }
  assignment(const assignment&) = delete;
  assignment& operator=(const assignment&) = delete;

  ~assignment() noexcept(false) {
    if (pending_ && std::uncaught_exceptions() == exceptions_ && (!rebinds || entry_.name() != nullptr)) run();
  }

  /// Runs now rather than at the end of the statement.
  void run() {
    pending_ = false;
    if constexpr (!rebinds) {
      if (entry_.is_stale(detail::access::storage_of(target_)))
        detail::refuse_late_assignment("its target was written");
      detail::assign_into(target_, e_);
    } else {
      if (entry_.is_stale(detail::access::storage_of(target_)))
        detail::refuse_late_assignment("its target was written or given another value");
      if constexpr (detail::points_in<E> == 0 && !is_tracked_v<E>) {
        detail::check_defined("evaluate", e_);
        if (detail::is_replaceable(target_, e_, 1)) return detail::write(e_, target_);
      }
      target_ = tensor_type(std::move(e_));
    }
  }

  /// The value of the left side.
  operator tensor_type() && {
    if constexpr (rebinds)
      if (entry_.name() == nullptr) return value_without_name();
    if (pending_) run();
    return target_;
  }
  /// The left side itself, where it has a name. A template, so that a conversion to a value prefers the one above.
  template <class = void>
    requires is_named
  operator tensor_type&() && {
    if (entry_.name() == nullptr) detail::refuse_late_assignment("the tensor on its left side was destroyed");
    if (pending_) run();
    return *static_cast<tensor_type*>(entry_.name());
  }

  // For fuse().
  const E& source() const { return e_; }
  Target& target() { return target_; }
  void take_over() { pending_ = false; }

 private:
  SINTER_COLD tensor_type value_without_name() {
    pending_ = false;
    return tensor_type(std::move(e_));
  }

  // What is written: the named tensor itself where it gets a new value, otherwise a handle to its memory.
  std::conditional_t<rebinds, tensor_type&, tensor_type> target_;
  E e_;
  detail::assignment_target entry_;
  int exceptions_;
  bool pending_ = true;
};

namespace detail {

// `x = e, y = x` would read the x of before, and so would what a point has computed already.
template <class A, class B>
inline constexpr bool follows_at_a_comma = false;
template <class TargetA, class A, class TargetB, class B>
inline constexpr bool follows_at_a_comma<assignment<TargetA, A>, assignment<TargetB, B>> =
    !assignment<TargetA, A>::rebinds && points_in<B> == 0;

}  // namespace detail

/// Runs the first of two writes in place, `x += e, y -= f`, as in a fold over a comma; the second runs as ever.
template <class Target, class E, class B>
  requires(detail::follows_at_a_comma<assignment<Target, E>, detail::bare<B>>)
B&& operator,(assignment<Target, E>&& a, B&& b) {
  a.run();
  return std::forward<B>(b);
}
struct comma_behind_an_assignment_which_runs_at_the_semicolon;
struct write_two_statements;
template <class Target, class E, class B, class Problem = comma_behind_an_assignment_which_runs_at_the_semicolon,
          class Fix = write_two_statements>
  requires(!detail::follows_at_a_comma<assignment<Target, E>, detail::bare<B>>)
void operator,(assignment<Target, E>&&, B&&) = delete;

/// Runs the assignment and writes the value of its left side to a stream.
template <class Stream, class Target, class E>
  requires requires(Stream& s, const std::string& text) { s << text; }
Stream& operator<<(Stream& out, assignment<Target, E>&& a) {
  out << detail::bare<Target>(std::move(a));
  return out;
}

}  // namespace sinter
