// sinter/expr/point.hpp: what expressions share that run as a kernel of their own: reductions, products, row-wise ops.
#pragma once

#include <atomic>
#include <utility>

#include "sinter/expr/backend.hpp"
#include "sinter/expr/stock.hpp"

namespace sinter::detail {

bool recording();  // grad/tape.hpp

/// The result of a point, shared by all its copies: used twice, it is computed once.
template <class Result>
struct result_slot {
  Result value;
  bool filled = false;
  bool recorded = false;  ///< not so for what was computed under no_grad: it has no place in the graph
  std::atomic<std::int64_t> references{1};
};

/// A handle to one, with memory of its own. No std::shared_ptr, which is some 40 functions for each type of result.
template <class Result>
class shared_slot {
 public:
  shared_slot() : slot_(make()) {}
  shared_slot(const shared_slot& other) noexcept : slot_(other.slot_) {
    if (slot_ != nullptr) slot_->references.fetch_add(1, std::memory_order_relaxed);
  }
  shared_slot(shared_slot&& other) noexcept : slot_(std::exchange(other.slot_, nullptr)) {}
  shared_slot& operator=(shared_slot other) noexcept {
    std::swap(slot_, other.slot_);
    return *this;
  }
  ~shared_slot() {
    if (slot_ != nullptr) release(slot_);
  }

  result_slot<Result>* operator->() const noexcept { return slot_; }
  bool is_only() const noexcept { return slot_->references.load(std::memory_order_acquire) == 1; }

 private:
  static result_slot<Result>* make();
  static void release(result_slot<Result>* slot) noexcept;

  result_slot<Result>* slot_;
};
template <class Result>
result_slot<Result>* shared_slot<Result>::make() {
  return new result_slot<Result>;
}
template <class Result>
[[gnu::noinline]] void shared_slot<Result>::release(result_slot<Result>* slot) noexcept {
  if (slot->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete slot;
}

template <class T, int R, device D, int Order>
struct result_of_point {
  using type = variable<T, R, D, Order>;
};
template <class T, int R, device D>
struct result_of_point<T, R, D, 0> {
  using type = tensor<T, R, D>;
};

/// Can the gradient of Point be differentiated again?
template <class Point>
inline constexpr bool differentiable_twice = requires { requires Point::differentiable_twice; };

/// Does Point leave a row's last step to the work that follows it?
template <class Point>
inline constexpr bool is_by_rows = requires { requires Point::by_rows; };

/// Of a point that keeps nothing for backward but its operands and result.
struct nothing_saved {};

/// Writes the value of a point, runs the epilogue on finished parts of it, and returns what the kernel saves for
/// backward.
template <class Point, class Tensor, class Epilogue>
auto compute_point(const Point& node, const Tensor& to, const Epilogue* epilogue) {
  if constexpr (std::is_void_v<decltype(node.compute_into(to, epilogue))>) {
    node.compute_into(to, epilogue);
    return nothing_saved{};
  } else {
    return node.compute_into(to, epilogue);
  }
}
/// The value of a tracked point with its place in the graph.
template <class Point, class Tensor, class Saved>
auto record_point(const Point& node, const Tensor& value, [[maybe_unused]] const Saved& saved) {
  if constexpr (requires { node.record(value, saved); }) return node.record(value, saved);
  else return node.record(value);
}

/// New memory for the value of a point: dense, row-major unless the point says otherwise.
template <class Point>
auto new_value_of(const Point& node) {
  if constexpr (requires { node.new_value(); }) return node.new_value();
  else return Point::tensor_type::uninitialized(node.shape());
}

/// Computes the value of a point into its slot.
template <class Point>
void compute_slot(const Point& node) {
  const auto value = new_value_of(node);
  [[maybe_unused]] const auto saved = compute_point(node, value, no_epilogue<device_of<Point>>);
  if constexpr (Point::order > 0) node.slot_->value = record_point(node, value, saved);
  else node.slot_->value = value;
  node.slot_->filled = true;
  node.slot_->recorded = recording();
}
/// The same of a point that is_stock.
template <class Point>
void compute_stock_slot(const Point& node);

/// Base of a point. Point supplies
///   compute_into(const tensor&, const backend<D>::epilogue*) const
///     writes the value; what it returns goes to record()
///   variable record(const tensor&[, saved]) const
///     if tracked: the value with its place in the graph
///   tensor new_value() const
///     optional: memory for the value, where that is not row-major
///   static constexpr bool takes_epilogue
///     may elementwise work follow inside its kernel?
///   static constexpr bool by_rows
///     optional: does it leave the last step of a row to that work?
///   static constexpr bool keeps_input
///     optional: may its kernel store what that work starts from?
template <class Point, class T, int R, device D, int Order>
struct point_base : expression_base<Point, T, R, D, Order> {
  static constexpr bool is_point = true;
  using tensor_type = tensor<T, R, D>;
  using result_type = typename result_of_point<T, R, D, Order>::type;

  /// The value; computed on first use.
  const result_type& result() const {
    static_assert(Order < 2 || differentiable_twice<Point>,
                  "sinter: this op has no second derivative; use it on variables of order 1, or write it with "
                  "elementwise ops, sum, mean and matmul");
    if (!slot_->filled || (Order > 0 && !slot_->recorded && recording())) {
      if constexpr (is_stock<Point>) compute_stock_slot(static_cast<const Point&>(*this));
      else compute_slot(static_cast<const Point&>(*this));
    }
    return slot_->value;
  }

  /// True if no other expression can ask for the bare result.
  bool exclusive() const { return !slot_->filled && only_owner(); }
  bool only_owner() const { return slot_.is_only(); }
  /// Whether this one, given its axes, can do what `takes_epilogue` says of its type.
  bool ready_for_epilogue() const { return true; }

  shared_slot<result_type> slot_;
};

/// Stands for the value of a point that leaves the last step to what follows.
template <class Tensor>
struct made_value : expression_base<made_value<Tensor>, element_of<Tensor>, Tensor::rank, device_of<Tensor>, 0> {
  static constexpr bool is_point = false;
  static constexpr int points = 0;
  explicit made_value(const Tensor& t) : place(t) { this->shape_ = t.shape(); }
  Tensor place;  ///< where the result of the whole statement goes
};
template <class Tensor>
struct lowering<made_value<Tensor>> {
  template <bool>
  static kernel::made<element_of<Tensor>> plan(const made_value<Tensor>&) {
    return {};
  }
  template <bool>
  static leaf_ref* list(const made_value<Tensor>& e, leaf_ref* to) {
    *to = leaf_of(e.place);
    return to + 1;
  }
};

/// The one point inside an elementwise expression.
template <class E>
const auto& point_of(const E& e) {
  if constexpr (is_point<E>) return e;
  else if constexpr (requires { e.a; }) {
    if constexpr (points_in<bare<decltype(e.a)>> > 0) return point_of(e.a);
    else if constexpr (requires { e.b; }) {
      if constexpr (points_in<bare<decltype(e.b)>> > 0) return point_of(e.b);
      else return point_of(e.c);
    }
  } else if constexpr (requires { e.body; }) {
    if constexpr (points_in<bare<decltype(e.body)>> > 0) return point_of(e.body);
    else return point_of(e.x);
  }
}

/// The points of E that are not inside another one.
template <class E>
inline constexpr int outer_points = is_point<E>;
template <class Op, class... A>
inline constexpr int outer_points<map_expr<Op, A...>> = (outer_points<A> + ...);
template <class Tag, class X, class Body>
inline constexpr int outer_points<let_expr<Tag, X, Body>> = outer_points<X> + outer_points<Body>;

/// Rebuilds an expression with every point replaced by f(point).
template <class E, class F>
decltype(auto) replace_points(const E& e, const F& f) {
  if constexpr (points_in<E> == 0) return (e);
  else if constexpr (is_point<E>) return f(e);
  else return e.rebuild([&f](const auto& child) -> decltype(auto) { return replace_points(child, f); });
}

}  // namespace sinter::detail
