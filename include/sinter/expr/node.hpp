// sinter/expr/node.hpp: the nodes of an expression, and the one helper through which every op builds one.
#pragma once

#include <utility>

#include "sinter/core/tensor.hpp"

namespace sinter {

/// A literal in an expression, with the element type of the tensor beside it.
template <class T>
struct constant_node {
  using value_type = T;
  using device_type = any_device;
  static constexpr int rank = 0;
  static constexpr int order = 0;
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = 0;

  T value;
  extents<0> shape() const { return {}; }
};

namespace detail {

template <class E>
inline constexpr bool is_constant = false;
template <class T>
inline constexpr bool is_constant<constant_node<T>> = true;

/// Points are the nodes that run as a kernel of their own: reductions, products, row-persistent ops.
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

template <class A, class... Rest>
struct first_device {
  using type = device_of<A>;
};
template <class A, class B, class... Rest>
  requires std::is_same_v<device_of<A>, any_device>
struct first_device<A, B, Rest...> : first_device<B, Rest...> {};

constexpr int larger(int a) { return a; }
template <class... I>
constexpr int larger(int a, int b, I... rest) {
  return larger(a > b ? a : b, rest...);
}

/// What all elementwise nodes share.
template <class Op, class... A>
struct map_base {
  using op_type = Op;
  using value_type = typename Op::template result<element_of<A>...>;
  using device_type = typename first_device<A...>::type;
  static constexpr int rank = larger(A::rank...);
  static constexpr int order = std::is_floating_point_v<value_type> ? larger(A::order...) : 0;  // masks carry no gradient
  static constexpr bool is_expression = true;
  static constexpr bool is_point = false;
  static constexpr int points = (points_in<A> + ...);

  const extents<rank>& shape() const { return shape_; }

  [[no_unique_address]] Op op;
  extents<rank> shape_;
};

}  // namespace detail

/// op(a), op(a, b) or op(a, b, c), elementwise over broadcast operands. Owns its operands; runs when assigned.
template <class Op, class... A>
struct map_node;

template <class Op, class A>
struct map_node<Op, A> : detail::map_base<Op, A> {
  A a;
  map_node(Op o, A x) : detail::map_base<Op, A>{o, x.shape()}, a(std::move(x)) {}

  /// The same op over f(operand)s.
  template <class F>
  auto rebuild(const F& f) const;
};

template <class Op, class A, class B>
struct map_node<Op, A, B> : detail::map_base<Op, A, B> {
  A a;
  B b;
  map_node(Op o, A x, B y)
      : detail::map_base<Op, A, B>{o, detail::broadcast_shapes(Op::name, x.shape(), y.shape())}, a(std::move(x)), b(std::move(y)) {}

  template <class F>
  auto rebuild(const F& f) const;
};

template <class Op, class A, class B, class C>
struct map_node<Op, A, B, C> : detail::map_base<Op, A, B, C> {
  A a;
  B b;
  C c;
  map_node(Op o, A x, B y, C z)
      : detail::map_base<Op, A, B, C>{o, detail::broadcast_shapes(Op::name, detail::broadcast_shapes(Op::name, x.shape(), y.shape()), z.shape())},
        a(std::move(x)),
        b(std::move(y)),
        c(std::move(z)) {}

  template <class F>
  auto rebuild(const F& f) const;
};

namespace detail {

template <class E>
inline constexpr bool is_map = false;
template <class Op, class... A>
inline constexpr bool is_map<map_node<Op, A...>> = true;

/// Leaves must hold a tensor before they enter an expression.
template <class E>
void check_defined(const char* op, const E& e) {
  if constexpr (is_tensor<E> || is_variable<E>) {
    if (!e.defined()) throw shape_error(std::string(op) + ": an operand is an empty (default constructed) tensor");
  }
}

/// Operand -> node: literals take the element type T, expressions stay what they are.
template <class T, class A>
auto as_node(A&& a) {
  if constexpr (literal<A>) return constant_node<T>{static_cast<T>(a)};
  else return bare<A>(std::forward<A>(a));
}

template <class Op, class... A>
auto make_map(Op op, A&&... a) {
  (check_defined(Op::name, a), ...);
  return map_node<Op, bare<A>...>(op, std::forward<A>(a)...);
}

}  // namespace detail

template <class Op, class A>
template <class F>
auto map_node<Op, A>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a));
}
template <class Op, class A, class B>
template <class F>
auto map_node<Op, A, B>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a), f(b));
}
template <class Op, class A, class B, class C>
template <class F>
auto map_node<Op, A, B, C>::rebuild(const F& f) const {
  return detail::make_map(this->op, f(a), f(b), f(c));
}

namespace detail {

// The element type that literals among the operands take.
template <class... A>
struct literal_target {
  using type = void;
};
template <class A, class... Rest>
struct literal_target<A, Rest...> : literal_target<Rest...> {};
template <class A, class... Rest>
  requires expression<A>
struct literal_target<A, Rest...> {
  using type = element_of<A>;
};

/// A literal fits elements of type T unless that would drop its fraction.
template <class A, class T>
inline constexpr bool literal_fits = !literal<A> || !std::is_floating_point_v<bare<A>> || std::is_floating_point_v<T>;

template <class A, class B>
concept literals_fit = (expression<A> && literal_fits<B, element_of<A>>) || (expression<B> && !expression<A> && literal_fits<A, element_of<B>>);

template <class A>
concept fits_any_device = literal<A>;

template <class A, class B>
concept devices_agree = literal<A> || literal<B> || same_device<A, B>;

template <class A>
struct element_or_literal {
  using type = bare<A>;
};
template <class A>
  requires expression<A>
struct element_or_literal<A> {
  using type = element_of<A>;
};

template <class A, class B>
concept elements_agree = literal<A> || literal<B> || std::is_same_v<element_of<A>, element_of<B>>;

template <class A, class B>
concept two_operands = (expression<A> && operand<B>) || (literal<A> && expression<B>);

/// Everything a binary elementwise op asks of its operands.
template <class A, class B>
concept compatible = two_operands<A, B> && devices_agree<A, B> && elements_agree<A, B> && literals_fit<A, B>;

template <class Op, class A, class B>
auto make_binary(Op op, A&& a, B&& b) {
  using T = typename literal_target<A, B>::type;
  return make_map(op, as_node<T>(std::forward<A>(a)), as_node<T>(std::forward<B>(b)));
}

template <class Op, class T>
concept accepts = Op::template accepts<T>;

template <class... A>
using literal_type_of = typename literal_target<A...>::type;

}  // namespace detail

template <class Op>
struct op_name_in_message;
template <class...>
struct element_type_without_this_op;
struct use_another_element_type_or_cast;

}  // namespace sinter

// Declares `name(a)` for a unary op, and its rejection of element types the op has no meaning for.
#define SINTER_UNARY_FUNCTION(name, op)                                                                                  \
  template <::sinter::expression A>                                                                                      \
    requires(op::template accepts<::sinter::element_of<A>>)                                                              \
  auto name(A&& a) {                                                                                                     \
    return ::sinter::detail::make_map(op{}, std::forward<A>(a));                                                         \
  }                                                                                                                      \
  template <::sinter::expression A, class Problem = ::sinter::element_type_without_this_op<::sinter::element_of<A>>,     \
            class Fix = ::sinter::use_another_element_type_or_cast>                                                      \
    requires(!op::template accepts<::sinter::element_of<A>>)                                                             \
  void name(A&&) = delete;

// The rejections of a binary function or operator: other device, other element type, a fraction for integer elements.
#define SINTER_BINARY_REJECTIONS(name)                                                                                   \
  template <::sinter::expression A, ::sinter::expression B,                                                              \
            class Problem = ::sinter::operands_on_different_devices<::sinter::device_of<A>, ::sinter::device_of<B>>,     \
            class Fix = ::sinter::copy_one_operand_with_dot_to>                                                          \
    requires(!::sinter::same_device<A, B>)                                                                               \
  void name(const A&, const B&) = delete;                                                                                \
  template <::sinter::expression A, ::sinter::expression B,                                                              \
            class Problem = ::sinter::mixed_element_types<::sinter::element_of<A>, ::sinter::element_of<B>>,             \
            class Fix = ::sinter::convert_one_operand_with_cast>                                                         \
    requires(::sinter::same_device<A, B> && !::sinter::detail::elements_agree<A, B>)                                     \
  void name(const A&, const B&) = delete;                                                                                \
  template <class A, class B, class Problem = ::sinter::floating_literal_with_elements_of_type<                          \
                                  typename ::sinter::detail::literal_target<A, B>::type>,                                \
            class Fix = ::sinter::write_an_integer_literal_or_cast_the_tensor>                                           \
    requires(::sinter::detail::two_operands<A, B> && (::sinter::literal<A> || ::sinter::literal<B>) &&                   \
             !::sinter::detail::literals_fit<A, B>)                                                                      \
  void name(const A&, const B&) = delete;

// Declares `name(a, b)` (or `operator+(a, b)`) for a binary op together with every rejection.
#define SINTER_BINARY_FUNCTION(name, op)                                                                                 \
  template <class A, class B>                                                                                            \
    requires(::sinter::detail::compatible<A, B> &&                                                                       \
             op::template accepts<typename ::sinter::detail::literal_target<A, B>::type>)                                \
  auto name(A&& a, B&& b) {                                                                                              \
    return ::sinter::detail::make_binary(op{}, std::forward<A>(a), std::forward<B>(b));                                  \
  }                                                                                                                      \
  SINTER_BINARY_REJECTIONS(name)
