// sinter/expr/let.hpp: let(x, f): x computed once per element and named within f.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/math/scalar.hpp"

namespace sinter {

/// The name that let() gives to a value inside its body. It may be copied, but means nothing outside of that body.
template <class Tag, class T, int R, class D, int Order>
struct [[nodiscard]] bound_expr {
  using value_type = T;
  using device_type = D;
  static constexpr int rank = R;
  static constexpr int order = Order;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  const extents<R>& shape() const { return shape_; }
  bound_expr<Tag, T, R, D, 0> untracked() const { return {shape_, let}; }

  extents<R> shape_;
  std::uint64_t let;  ///< the number of the call of let() that binds it
};

template <class Tag, class X, class Body>
struct [[nodiscard]] let_expr
    : detail::expression_base<let_expr<Tag, X, Body>, element_of<Body>, detail::larger(X::rank, Body::rank),
                              typename detail::first_device<X, Body>::type,
                              detail::order_of_value<element_of<Body>>(detail::larger(X::order, Body::order))> {
  using tag = Tag;
  static constexpr bool is_point = false;
  static constexpr int points = detail::points_in<X> + detail::points_in<Body>;

  let_expr(X value, Body in) : x(std::move(value)), body(std::move(in)) {
    this->shape_ = detail::broadcast_shapes("let", x.shape(), body.shape());
  }

  template <class F>
  auto rebuild(const F& f) const {
    using NewX = detail::bare<decltype(f(x))>;
    using NewBody = detail::bare<decltype(f(body))>;
    return let_expr<Tag, NewX, NewBody>(f(x), f(body));
  }

  X x;
  Body body;
};

namespace detail {

namespace kernel {

/// Values in scope of a let, innermost first, and the sums of their gradients.
template <class Tag, class V, class Outer>
struct scope {
  V value;
  V gradient;
  Outer& outer;

  template <class Name>
  SINTER_WORD auto get() const {
    if constexpr (std::is_same_v<Name, Tag>) return value;
    else return outer.template get<Name>();
  }
  template <class Name, class G>
  SINTER_WORD void add(const G& g) {
    if constexpr (std::is_same_v<Name, Tag>) gradient = gradient + g;
    else outer.template add<Name>(g);
  }
};

template <class Tag, class T, bool Diff>
struct bound {
  using value_type = T;
  using leaf_types = type_list<>;
  using sink_types = type_list<>;
  static constexpr int leaves = 0;
  static constexpr int sinks = 0;
  static constexpr bool diff = Diff;

  template <int, class M, class Scope>
  SINTER_WORD auto eval(const M&, const Scope& s) const {
    return s.template get<Tag>();
  }
  template <class V>
  struct forward_values {
    V value;
  };
  template <int L, bool, class M, class Scope>
  SINTER_WORD auto forward(const M& m, const Scope& s) const {
    return forward_values<decltype(eval<L>(m, s))>{eval<L>(m, s)};
  }
  template <int, int, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M&, Scope& s, const Rec&, const G& g) const {
    if constexpr (Diff) s.template add<Tag>(g);
  }
  template <bool>
  static constexpr void mark(bool*) {}
};

/// Leaves and sinks of the body come before those of x: it is the body that is swept back first, and the first to meet
/// the gradient of a leaf that is in both assigns it.
template <class Tag, class X, class Body>
struct let {
  using leaf_types = concatenated<typename Body::leaf_types, typename X::leaf_types>;
  using sink_types = concatenated<typename Body::sink_types, typename X::sink_types>;
  static constexpr int leaves = X::leaves + Body::leaves;
  static constexpr int sinks = X::sinks + Body::sinks;
  static constexpr bool diff = X::diff || Body::diff;
  X x;
  Body body;

  template <int L, class M, class Scope>
  SINTER_WORD auto eval(const M& m, const Scope& s) const {
    const auto v = x.template eval<L + Body::leaves>(m, s);
    return body.template eval<L>(m, scope<Tag, bare<decltype(v)>, const Scope>{v, v, s});
  }
  template <class RX, class RB, class V>
  struct forward_values {
    RX x;
    RB body;
    V value;
  };
  template <int L, bool Need, class M, class Scope>
  SINTER_WORD auto forward(const M& m, const Scope& s) const {
    auto rx = x.template forward<L + Body::leaves, true>(m, s);
    using V = decltype(rx.value);
    auto rb = body.template forward<L, Need>(m, scope<Tag, V, const Scope>{rx.value, rx.value, s});
    return forward_values<decltype(rx), decltype(rb), decltype(rb.value)>{rx, rb, rb.value};
  }
  template <int L, int S, class M, class Scope, class Rec, class G>
  SINTER_WORD void reverse(const M& m, Scope& s, const Rec& r, const G& g) const {
    using V = decltype(r.x.value);
    if constexpr (X::diff) {
      scope<Tag, V, Scope> inner{r.x.value, math::constant<V>(0), s};
      body.template reverse<L, S>(m, inner, r.body, g);
      x.template reverse<L + Body::leaves, S + Body::sinks>(m, s, r.x, inner.gradient);
    } else {
      scope<Tag, V, Scope> inner{r.x.value, r.x.value, s};
      body.template reverse<L, S>(m, inner, r.body, g);
    }
  }
  template <bool Need>
  static constexpr void mark(bool* needed) {
    Body::template mark<Need>(needed);
    X::template mark<true>(needed + Body::leaves);
  }
};

}  // namespace kernel

template <class Tag, class T, int R, class D, int Order>
struct lowering<bound_expr<Tag, T, R, D, Order>> {
  template <bool Track>
  static kernel::bound<Tag, T, Track && (Order > 0)> plan(const bound_expr<Tag, T, R, D, Order>&) {
    return {};
  }
  template <bool>
  static leaf_ref* list(const bound_expr<Tag, T, R, D, Order>&, leaf_ref* to) {
    return to;
  }
};

template <class Tag, class X, class Body>
struct lowering<let_expr<Tag, X, Body>> {
  template <bool Track>
  static kernel::let<Tag, lowered<Track, X>, lowered<Track, Body>> plan(const let_expr<Tag, X, Body>& e) {
    return {lower<Track>(e.x), lower<Track>(e.body)};
  }
  template <bool Track>
  static leaf_ref* list(const let_expr<Tag, X, Body>& e, leaf_ref* to) {
    return list_leaves<Track>(e.x, list_leaves<Track>(e.body, to));
  }
};

template <class Tag, class X, class Body>
struct leaves_before_point<let_expr<Tag, X, Body>> {
  static constexpr int count() {
    if constexpr (points_in<Body> > 0) return leaves_before_point<Body>::value;
    else if constexpr (points_in<X> > 0) return lowered<false, Body>::leaves + leaves_before_point<X>::value;
    else return 0;
  }
  static constexpr int value = count();
};

/// The name of a let() whose body holds lets that nest so deep: unlike any name inside, and the same for equal
/// formulas, which then share their kernel. It does not hold the type of a lambda, which CUDA admits in no kernel.
template <int Depth>
struct let_tag;

template <class E>
inline constexpr int lets_inside = 0;
template <template <class...> class Node, class... A>
inline constexpr int lets_inside<Node<A...>> = larger(0, lets_inside<A>...);
template <int Depth, class X, class Body>
inline constexpr int lets_inside<let_expr<let_tag<Depth>, X, Body>> = larger(Depth + 1, lets_inside<X>);

template <int Depth, class X>
using let_name = bound_expr<let_tag<Depth>, element_of<X>, rank_of<X>, device_of<X>, X::order>;

/// True if e reads a name with this Tag that no let() inside of E binds.
template <class Tag, class E>
inline constexpr bool reads_tag = false;
template <class Tag, class T, int R, class D, int Order>
inline constexpr bool reads_tag<Tag, bound_expr<Tag, T, R, D, Order>> = true;
template <class Tag, class Op, class... A>
inline constexpr bool reads_tag<Tag, map_expr<Op, A...>> = (reads_tag<Tag, A> || ...);
template <class Tag, class Own, class X, class Body>
inline constexpr bool reads_tag<Tag, let_expr<Own, X, Body>> =
    reads_tag<Tag, X> || (!std::is_same_v<Own, Tag> && reads_tag<Tag, Body>);

inline std::uint64_t next_let() {
  static std::atomic<std::uint64_t> count{0};
  return count.fetch_add(1, std::memory_order_relaxed) + 1;
}

/// Checks that the names with this Tag in e, as far as no let() inside of e binds them, are those of one call of let().
/// Errors: value_error.
template <class Tag, class E>
void check_names(const E& e, std::uint64_t let) {
  if constexpr (!reads_tag<Tag, E>) {
    return;
  } else if constexpr (is_map<E>) {
    check_names<Tag>(e.a, let);
    if constexpr (requires { e.b; }) check_names<Tag>(e.b, let);
    if constexpr (requires { e.c; }) check_names<Tag>(e.c, let);
  } else if constexpr (requires { e.body; }) {
    check_names<Tag>(e.x, let);
    if constexpr (!std::is_same_v<typename E::tag, Tag>) check_names<Tag>(e.body, let);
  } else if (e.let != let) {
    refuse<value_error>(
        {"let: the body reads a name that another let() has given; a name is of use only inside the function "
         "that receives it"});
  }
}

/// Called for a body that is elsewhere.
template <class X, class Body, class Problem = operands_on_different_devices<device_of<X>, device_of<Body>>,
          class Fix = copy_one_operand_with_dot_to>
void let() = delete;

/// The let() of a body of type Probe at depth 0. One message is enough for each mistake.
template <class Probe, class X, class F>
auto make_let(X&& x, const F& f) {
  constexpr bool gives_expression = expression<Probe>;  // named, so that the message does not explain the concept
  static_assert(gives_expression, "sinter: the function given to let() must return an expression, such as t * t");
  if constexpr (!gives_expression) {
    return bare<X>(std::forward<X>(x));
  } else if constexpr (!devices_agree<bare<X>, Probe>) {
    let<bare<X>, Probe>();
    return bare<X>(std::forward<X>(x));
  } else {
    constexpr bool name_stays_outside_of_points = !point_reads_name<Probe>;
    static_assert(
        name_stays_outside_of_points,
        "sinter: a reduction or row-wise op in the body of let() reads the name; it runs as a kernel of its own and "
        "cannot see it. Evaluate the value first (tensor t = x;) and write the formula with t");
    if constexpr (!name_stays_outside_of_points) {
      return bare<X>(std::forward<X>(x));
    } else {
      constexpr int depth = lets_inside<Probe>;
      const std::uint64_t call = next_let();
      auto body = f(let_name<depth, bare<X>>{x.shape(), call});
      check_names<let_tag<depth>>(body, call);
      return let_expr<let_tag<depth>, bare<X>, decltype(body)>(std::forward<X>(x), std::move(body));
    }
  }
}

}  // namespace detail

/// f(t), where t stands for x, computed once per element and held in a register. f is a generic function from an
/// expression to an expression on the same device; it may use other tensors and nest further lets. Errors: shape_error
/// when shapes do not broadcast, value_error when the body reads a name that was kept from another let().
///
///     tensor y = let(exp(x), [](auto t) { return t * t + t; });
template <expression X, class F>
auto let(X&& x, const F& f) {
  detail::check_defined("let", x);
  return detail::make_let<detail::bare<decltype(f(std::declval<detail::let_name<0, detail::bare<X>>>()))>>(
      std::forward<X>(x), f);
}

}  // namespace sinter
