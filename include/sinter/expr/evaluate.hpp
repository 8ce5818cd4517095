// sinter/expr/evaluate.hpp: running a statement: `tensor y = e`, `y = e`, `y += e`, eval(e).
#pragma once

#include <exception>
#include <optional>

#include "sinter/expr/backend.hpp"

namespace sinter {

namespace detail {

/// Replaces every point of an expression by its result; the rest is one elementwise pass.
template <class E>
struct materialised {
  static const E& of(const E& e) { return e; }
};
template <class E>
  requires(is_point<E>)
struct materialised<E> {
  static auto of(const E& e) { return e.result(); }
};
template <class Op, class A>
  requires(points_in<A> > 0)
struct materialised<map_node<Op, A>> {
  static auto of(const map_node<Op, A>& e) { return make_map(e.op, materialised<A>::of(e.a)); }
};
template <class Op, class A, class B>
  requires(points_in<A> + points_in<B> > 0)
struct materialised<map_node<Op, A, B>> {
  static auto of(const map_node<Op, A, B>& e) { return make_map(e.op, materialised<A>::of(e.a), materialised<B>::of(e.b)); }
};
template <class Op, class A, class B, class C>
  requires(points_in<A> + points_in<B> + points_in<C> > 0)
struct materialised<map_node<Op, A, B, C>> {
  static auto of(const map_node<Op, A, B, C>& e) {
    return make_map(e.op, materialised<A>::of(e.a), materialised<B>::of(e.b), materialised<C>::of(e.c));
  }
};

template <class E>
decltype(auto) materialise(const E& e) {
  return materialised<E>::of(e);
}

/// Writes e, which holds no points, to `to`, a view or tensor of e's shape.
template <class E, class T, auto S, device D>
void write(const E& e, const tensor<T, S, D>& to) {
  using K = lowered<false, E>;
  leaf_ref leaves[K::leaves > 0 ? K::leaves : 1];
  bind_leaves(e, leaves);
  sink_ref out;
  out.data = access::data(to);
  out.element_size = sizeof(T);
  for (int d = 0; d < to.rank; ++d) out.strides[d] = to.strides()[d];
  backend<D>::template map<T>(lower<false>(e), to.shape().data(), to.rank, leaves, out);
}

/// May a pass that writes `to` read e at the same time? Only where each leaf on the same storage is read at exactly the
/// index that is written.
template <class E, class T, auto S, device D>
bool needs_temporary(const E& e, const tensor<T, S, D>& to) {
  bool clash = false;
  auto look = [&](const auto& leaf, auto) {
    using L = bare<decltype(leaf)>;
    const auto check = [&](const auto& t) {
      if (access::storage_of(t).get() != access::storage_of(to).get()) return;
      bool same = static_cast<const void*>(access::data(t)) == static_cast<const void*>(access::data(to)) && L::rank == to.rank;
      if constexpr (L::rank == tensor<T, S, D>::rank) same = same && t.shape() == to.shape() && t.strides() == to.strides();
      clash = clash || !same;
    };
    if constexpr (is_variable<L>) check(access::value_of(leaf));
    else check(leaf);
  };
  visit_leaves<false>(e, look);
  return clash;
}

template <class E>
auto run_untracked(const E& e) {
  using R = tensor<element_of<E>, rank_of<E>, device_of<E>>;
  if constexpr (is_point<E>) {
    return e.result();
  } else {
    R to = R::uninitialized(e.shape());
    write(materialise(e), to);
    return to;
  }
}

template <class E>
struct evaluation {
  /// A tensor, or a variable when e is tracked (grad/statement.hpp).
  static auto run(const E& e) {
    if constexpr (is_tracked_v<E>) {
      return evaluation<E>::run_tracked(e);
    } else {
      check_defined("evaluate", e);
      return run_untracked(e);
    }
  }
  static auto run_tracked(const E& e);
};

}  // namespace detail

/// Runs the expression and returns its value: a tensor, or a variable when a variable is among its leaves.
template <expression E>
auto eval(const E& e) {
  if constexpr (detail::is_tensor<E> || detail::is_variable<E>) return e;
  else return detail::evaluation<E>::run(e);
}

namespace detail {

template <class Y, class E>
void check_assignable(const char* op, const Y& y, const E& e) {
  check_defined(op, y);
  check_defined(op, e);
  extents<Y::rank> merged = y.shape();
  bool fits = E::rank <= Y::rank && broadcast_into(merged.values, Y::rank, e.shape().data(), E::rank);
  if (!fits || !(merged == y.shape()))
    throw shape_error(std::string(op) + ": shape " + shape_text(e.shape()) + " does not broadcast to the destination's " + shape_text(y.shape()));
  for (int d = 0; d < Y::rank; ++d)
    if (y.strides()[d] == 0 && y.shape()[d] > 1)
      throw shape_error(std::string(op) + ": the destination is a broadcast view; its elements repeat. Write to a clone() instead");
}

/// Writes e into y's storage.
template <class Y, class E>
void assign_into(const Y& y, const E& e) {
  auto&& ready = materialise(e);
  if (needs_temporary(ready, y)) {
    const auto temporary = tensor<element_of<Y>, rank_of<E>, device_of<Y>>::uninitialized(ready.shape());
    write(ready, temporary);
    write(temporary, y);
  } else {
    write(ready, y);
  }
  access::storage_of(y)->version.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace detail

/// A pending `y = e`; it runs when the statement ends, unless fuse() takes it over. Target is `tensor&` for a named
/// tensor, which gets a new value, and `tensor` for a view or an update in place, which is written through.
template <class Target, class E>
class assignment {
 public:
  using tensor_type = std::remove_reference_t<Target>;
  static constexpr bool rebinds = std::is_reference_v<Target>;

  template <class X>
  assignment(Target target, X&& e) : target_(target), e_(std::forward<X>(e)), exceptions_(std::uncaught_exceptions()) {
    if constexpr (!rebinds) detail::check_assignable("assignment", target_, e_);
  }
  assignment(const assignment&) = delete;
  assignment& operator=(const assignment&) = delete;

  ~assignment() noexcept(false) {
    if (pending_ && std::uncaught_exceptions() == exceptions_) run();
  }

  /// Runs now rather than at the end of the statement.
  void run() {
    pending_ = false;
    if constexpr (rebinds) target_ = tensor_type(e_);
    else detail::assign_into(target_, e_);
  }

  operator const tensor_type&() {
    if (pending_) run();
    return target_;
  }

  // For fuse().
  const E& source() const { return e_; }
  Target& target() { return target_; }
  void take_over() { pending_ = false; }

 private:
  Target target_;
  E e_;
  int exceptions_;
  bool pending_ = true;
};

}  // namespace sinter
