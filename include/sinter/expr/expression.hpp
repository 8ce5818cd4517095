// sinter/expr/expression.hpp: what expressions are made of, and the one helper through which every op builds one.
#pragma once

#include <utility>

#include "sinter/core/tensor.hpp"
#include "sinter/expr/operands.hpp"

namespace sinter {

/// A literal in an expression, with the element type of the tensor beside it; one beside half or bfloat16 keeps the
/// digits of a float.
template <class T>
struct constant_expr {
  using value_type = T;
  using device_type = any_device;
  static constexpr int rank = 0;
  static constexpr int order = 0;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  compute_type<T> value;
  extents<0> shape() const { return {}; }
};

namespace detail {

template <class E>
inline constexpr bool is_constant = false;
template <class T>
inline constexpr bool is_constant<constant_expr<T>> = true;

/// Points are the expressions that run as a kernel of their own: reductions, products, row-persistent ops.
template <class E>
constexpr int count_points() {
  if constexpr (is_tensor<E> || is_variable<E>) return 0;
  else return E::points;
}
template <class E>
inline constexpr int points_in = count_points<E>();
template <class E>
constexpr bool point_test() {
  if constexpr (is_tensor<E> || is_variable<E>) return false;
  else return E::is_point;
}
template <class E>
inline constexpr bool is_point = point_test<E>();

constexpr int larger(int a) { return a; }
template <class... I>
constexpr int larger(int a, int b, I... rest) {
  return larger(a > b ? a : b, rest...);
}

}  // namespace detail

template <class Op, class... A>
struct map_expr;

class gradient_listener;  // grad/listener.hpp

/// Options of backward().
struct backward_options {
  bool retain_graph = false;  ///< keep what was saved, so that backward may run again
};

namespace detail {

/// The order of a value of type T made from operands of this order: masks and indices carry no gradient.
template <class T>
inline constexpr int order_of_value(int order) {
  return floating_element<T> ? order : 0;
}

/// What every expression that is no value yet shares; Self is the expression.
template <class Self, class T, int R, class D, int Order>
struct expression_base : members<Self> {
  using value_type = T;
  using device_type = D;
  static constexpr int rank = R;
  static constexpr int order = Order;
  static constexpr bool is_expression = true;
  using members<Self>::item, members<Self>::to;

  const extents<R>& shape() const { return shape_; }
  template <std::integral I, class Problem = shape_with_an_axis, class Fix = write_size_of_the_axis>
  void shape(I) const = delete;

  template <element To>
  [[nodiscard]] auto to() const {
    return this->template cast<To>();
  }
  /// Expressions have no `to` to a device: what is copied to another device is a value.
  template <device To, class Problem = expression_not_yet_evaluated_on<D>, class Fix = write_eval_of_it_before_dot_to>
  tensor<T, R, To> to() const = delete;

  // Views are those of the value, which is computed for them.
#define SINTER_VIEW_OF_VALUE(name)        \
  template <class... A>                   \
  [[nodiscard]] auto name(A... a) const { \
    return computed().name(a...);         \
  }
#define SINTER_VIEW_OF_VALUE_BY_LIST(name)                 \
  template <std::size_t N>                                 \
  [[nodiscard]] auto name(const index_t(&list)[N]) const { \
    return computed().name(list);                          \
  }
  SINTER_VIEW_OF_VALUE(slice)
  SINTER_VIEW_OF_VALUE(select)
  SINTER_VIEW_OF_VALUE(flatten)
  SINTER_VIEW_OF_VALUE(transpose)
  SINTER_VIEW_OF_VALUE(squeeze)
  SINTER_VIEW_OF_VALUE(unsqueeze)
  SINTER_VIEW_OF_VALUE(flip)
  SINTER_VIEW_OF_VALUE(diagonal)
  SINTER_VIEW_OF_VALUE(unfold)
  SINTER_VIEW_OF_VALUE(reshape)
  SINTER_VIEW_OF_VALUE_BY_LIST(reshape)
  SINTER_VIEW_OF_VALUE(broadcast_to)
  SINTER_VIEW_OF_VALUE_BY_LIST(broadcast_to)
  SINTER_VIEW_OF_VALUE_BY_LIST(permute)
  [[nodiscard]] auto detach() const { return computed().detach(); }
  [[nodiscard]] auto contiguous() const { return computed().contiguous(); }
#undef SINTER_VIEW_OF_VALUE
#undef SINTER_VIEW_OF_VALUE_BY_LIST
  template <class I>
  [[nodiscard]] auto operator[](const I& i) const {
    return computed()[i];
  }
  /// A value of its own, whoever else asks for this one.
  [[nodiscard]] auto clone() const { return eval(static_cast<const Self&>(*this)); }

  // Elements are those of a value: a loop over them would compute all of it for each.
  template <class Problem = expression_not_yet_evaluated_on<D>, class Fix = write_eval_of_it_before_its_elements>
  void data(...) const = delete;
  template <class Problem = expression_not_yet_evaluated_on<D>, class Fix = write_eval_of_it_before_its_elements>
  void operator()(...) const = delete;
  template <class Problem = expression_not_yet_evaluated_on<D>, class Fix = write_eval_of_it_before_its_elements>
  void begin() const = delete;
  void* end() const;  // so that a loop has one error

  /// A number is read from it with item(). Explicit from rank 1: otherwise compilers would try built-in operators on
  /// numbers too.
  template <class Number, class Problem = typename detail::number_mistake<Number, R>::problem,
            class Fix = typename detail::number_mistake<Number, R>::fix>
  explicit(R != 0) operator Number() const = delete;

  /// The single element, computed and copied to the host, as of a tensor.
  T item() const { return eval_to_read(static_cast<const Self&>(*this)).item(); }

  /// Records the value and runs backward from it, as of a variable: without a seed where it is one element.
  void backward(backward_options options = {}) const
    requires(Order > 0)
  {
    eval_to_read(static_cast<const Self&>(*this)).backward(options);
  }
  template <expression Seed>
  void backward(const Seed& seed, backward_options options = {}) const
    requires(Order > 0 && converts<Seed, T, R, D>)
  {
    eval_to_read(static_cast<const Self&>(*this)).backward(seed, options);
  }
  void backward(gradient_listener& listener, backward_options options = {}) const
    requires(Order > 0)
  {
    eval_to_read(static_cast<const Self&>(*this)).backward(listener, options);
  }
  template <expression Seed>
  void backward(const Seed& seed, gradient_listener& listener, backward_options options = {}) const
    requires(Order > 0 && converts<Seed, T, R, D>)
  {
    eval_to_read(static_cast<const Self&>(*this)).backward(seed, listener, options);
  }
  template <class Seed, class Problem = typename seed_mistake<Seed, T, R, D>::problem,
            class Fix = typename seed_mistake<Seed, T, R, D>::fix>
  void backward(const Seed&, backward_options = {}) const
    requires(Order > 0)
  = delete;
  template <class Seed, class Problem = typename seed_mistake<Seed, T, R, D>::problem,
            class Fix = typename seed_mistake<Seed, T, R, D>::fix>
  void backward(const Seed&, gradient_listener&, backward_options = {}) const
    requires(Order > 0)
  = delete;

  extents<R> shape_;

 private:
  auto computed() const { return eval_to_read(static_cast<const Self&>(*this)); }
};

template <class Op, class... A>
using map_value = typename Op::template result<element_of<A>...>;

/// What all elementwise expressions share.
template <class Op, class... A>
struct map_base
    : expression_base<map_expr<Op, A...>, map_value<Op, A...>, larger(A::rank...), typename first_device<A...>::type,
                      order_of_value<map_value<Op, A...>>(larger(A::order...))> {
  using op_type = Op;
  static constexpr bool is_point = false;
  static constexpr int points = (points_in<A> + ...);

  [[no_unique_address]] Op op;
};

}  // namespace detail

/// op(a), op(a, b) or op(a, b, c), elementwise over broadcast operands. Owns its operands; runs when assigned.
template <class Op, class A>
struct [[nodiscard]] map_expr<Op, A> : detail::map_base<Op, A> {
  A a;
  template <class X>
  map_expr(Op o, X&& x) : detail::map_base<Op, A>{{{}, x.shape()}, o}, a(std::forward<X>(x)) {}

  /// The same op over f(operand)s.
  template <class F>
  auto rebuild(const F& f) const;
};

template <class Op, class A, class B>
struct [[nodiscard]] map_expr<Op, A, B> : detail::map_base<Op, A, B> {
  A a;
  B b;
  template <class X, class Y>
  map_expr(Op o, X&& x, Y&& y)
      : detail::map_base<Op, A, B>{{{}, detail::broadcast_shapes(Op::name, x.shape(), y.shape())}, o},
        a(std::forward<X>(x)),
        b(std::forward<Y>(y)) {}

  template <class F>
  auto rebuild(const F& f) const;
};

template <class Op, class A, class B, class C>
struct [[nodiscard]] map_expr<Op, A, B, C> : detail::map_base<Op, A, B, C> {
  A a;
  B b;
  C c;
  template <class X, class Y, class Z>
  map_expr(Op o, X&& x, Y&& y, Z&& z)
      : detail::map_base<Op, A, B, C>{{{},
                                       detail::broadcast_shapes(
                                           Op::name, detail::broadcast_shapes(Op::name, x.shape(), y.shape()),
                                           z.shape())},
                                      o},
        a(std::forward<X>(x)),
        b(std::forward<Y>(y)),
        c(std::forward<Z>(z)) {}

  template <class F>
  auto rebuild(const F& f) const;
};

template <class Tag, class T, int R, class D, int Order>
struct bound_expr;  // expr/let.hpp
template <class Tag, class X, class Body>
struct let_expr;

namespace detail {

/// True if E reads a name that no let() inside of E binds, nor one whose tag is among Own.
template <class E, class... Own>
inline constexpr bool reads_name = false;
template <class Tag, class T, int R, class D, int Order, class... Own>
inline constexpr bool reads_name<bound_expr<Tag, T, R, D, Order>, Own...> = !(std::is_same_v<Tag, Own> || ...);
template <class Op, class... A, class... Own>
inline constexpr bool reads_name<map_expr<Op, A...>, Own...> = (reads_name<A, Own...> || ...);
template <class Tag, class X, class Body, class... Own>
inline constexpr bool reads_name<let_expr<Tag, X, Body>, Own...> =
    reads_name<X, Own...> || reads_name<Body, Own..., Tag>;

/// The same of the operand of a point of E, which is computed outside of the let() and knows no names.
template <class E>
inline constexpr bool point_reads_name = false;
template <class E>
  requires(point_test<E>() && requires { E::operands_read_name; })
inline constexpr bool point_reads_name<E> = E::operands_read_name;
template <class Op, class... A>
inline constexpr bool point_reads_name<map_expr<Op, A...>> = (point_reads_name<A> || ...);
template <class Tag, class X, class Body>
inline constexpr bool point_reads_name<let_expr<Tag, X, Body>> = point_reads_name<X> || point_reads_name<Body>;

template <class E>
inline constexpr bool is_map = false;
template <class Op, class... A>
inline constexpr bool is_map<map_expr<Op, A...>> = true;

/// Leaves must hold a tensor before they enter an expression.
template <class E>
void check_defined(const char* op, const E& e) {
  if constexpr (is_tensor<E> || is_variable<E>) {
    if (!e.defined()) refuse<shape_error>({op, ": an operand is an empty (default constructed) tensor"});
  }
}

/// A leaf as plain tensor.
template <class E>
const auto& plain(const E& e) {
  if constexpr (is_variable<E>) return access::value_of(e);
  else return e;
}

template <class T>
[[noreturn]] SINTER_COLD void refuse_literal(text_piece a) {
  refuse<value_error>({"the literal ", a, " does not fit elements of type ", element_name<T>(),
                       "; cast<...>() the tensor to a wider type"});
}

/// A literal as element type T. Errors: value_error for one that T cannot hold.
template <class T, class A>
T literal_value(A a) {
  if (!fits_element<T>(a)) {
    if constexpr (std::is_integral_v<A>) refuse_literal<T>(a);
    else refuse_literal<T>(static_cast<double>(a));
  }
  return static_cast<T>(a);
}

/// Operand -> expression: literals take the element type T, expressions are passed on.
template <class T, class A>
decltype(auto) as_expr(A&& a) {
  if constexpr (literal<A>) return constant_expr<T>{literal_value<compute_type<T>>(a)};
  else return std::forward<A>(a);
}

template <class Op, class... A>
auto make_map(Op op, A&&... a) {
  (check_defined(Op::name, a), ...);
  return map_expr<Op, bare<A>...>(op, std::forward<A>(a)...);
}

}  // namespace detail

template <class Op, class A>
template <class F>
auto map_expr<Op, A>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a));
}
template <class Op, class A, class B>
template <class F>
auto map_expr<Op, A, B>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a), f(b));
}
template <class Op, class A, class B, class C>
template <class F>
auto map_expr<Op, A, B, C>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a), f(b), f(c));
}

namespace detail {

template <class Op, class A, class B>
auto make_binary(Op op, A&& a, B&& b) {
  using T = literals_type<A, B>;
  return make_map(op, as_expr<T>(std::forward<A>(a)), as_expr<T>(std::forward<B>(b)));
}

template <class Op, class A, class B, class C>
auto make_ternary(Op op, A&& a, B&& b, C&& c) {
  using T = literals_type<A, B, C>;
  return make_map(op, as_expr<T>(std::forward<A>(a)), as_expr<T>(std::forward<B>(b)), as_expr<T>(std::forward<C>(c)));
}

}  // namespace detail
}  // namespace sinter
