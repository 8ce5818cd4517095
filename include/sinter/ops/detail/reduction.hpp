// sinter/ops/detail/reduction.hpp: what sum, max, ... share: the fold of an expression along axes.
#pragma once

#include "sinter/expr/reducer.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

/// As last argument of a reduction: reduced axes stay, with extent 1.
///
///     tensor centred = x - mean(x, 1, keepdim);
struct keepdim_t {};
inline constexpr keepdim_t keepdim{};

namespace detail {

/// Nothing, or keepdim.
template <class... Keep>
concept may_keep = sizeof...(Keep) <= 1 && (std::is_same_v<Keep, keepdim_t> && ...);

/// Which axes a reduction removes.
struct axis_set {
  bool has[max_rank] = {};
};

SINTER_SHARED axis_set axes_of(const char* op, const index_t* axes, int count, int rank);
#if SINTER_DEFINES
SINTER_SHARED axis_set axes_of(const char* op, const index_t* axes, int count, int rank) {
  axis_set set;
  for (int i = 0; i < count; ++i) {
    const int a = checked_axis(op, axes[i], rank);
    if (set.has[a]) refuse<index_error>({op, ": axis ", axes[i], " is named twice"});
    set.has[a] = true;
  }
  return set;
}
#endif

template <int R>
axis_set all_axes() {
  axis_set set;
  for (int d = 0; d < R; ++d) set.has[d] = true;
  return set;
}

/// How many elements of e fold into one.
template <class E>
index_t count_reduced(const E& e, const axis_set& axes) {
  index_t n = 1;
  for (int d = 0; d < E::rank; ++d) n *= axes.has[d] ? e.shape()[d] : 1;
  return n;
}

/// What a derivative gets for the value of an elementwise statement that is folded at once.
struct summand_op {
  static constexpr const char* name = "sum";
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  template <class T>
  using result = T;
  template <class V>
  SINTER_WORD static V apply(V x) {
    return x;
  }
  template <int I, class G, class X, class Y>
  SINTER_WORD static G grad(const G& g, const X&, const Y&) {
    return g;
  }
};

}  // namespace detail

template <class>
struct third_argument_that_is_not_keepdim_but;
struct write_keepdim_or_list_the_axes_in_braces;
struct axis_that_is_not_an_integer;
struct use_an_integer_axis_or_for_elementwise_work_maximum_minimum_or_clamp;

namespace detail {

constexpr auto find_axis_mistake() { return fitting<void>{}; }
template <class Axis, class... Keep>
constexpr auto find_axis_mistake(std::type_identity<Axis>, std::type_identity<Keep>...) {
  if constexpr (floating_element<Axis> || expression<Axis>)
    return mistake<axis_that_is_not_an_integer, use_an_integer_axis_or_for_elementwise_work_maximum_minimum_or_clamp>{};
  else if constexpr (!std::is_integral_v<Axis> || sizeof...(Keep) > 1) return not_operands{};
  else if constexpr (!(std::is_same_v<Keep, keepdim_t> && ...))
    return mistake<third_argument_that_is_not_keepdim_but<Keep...>, write_keepdim_or_list_the_axes_in_braces>{};
  else return fitting<void>{};
}
/// fitting<...>, or why Op does not reduce E along Rest: nothing, an axis (a number of any type for a list of them),
/// and keepdim behind it.
template <class Op, class E, class... Rest>
constexpr auto find_reduction_mistake() {
  if constexpr (!expression<E>) return no_operands<E>{};
  else if constexpr (!Op::template accepts<element_of<E>>)
    return mistake<element_type_without_this_op<element_of<E>>, use_another_element_type_or_cast>{};
  else {
    using found = decltype(find_axis_mistake(std::type_identity<Rest>()...));
    if constexpr (requires {
                    typename found::fix;
                    typename Op::fix_of_third;
                    requires std::is_same_v<typename found::fix, write_keepdim_or_list_the_axes_in_braces>;
                  })
      return mistake<typename found::problem, typename Op::fix_of_third>{};
    else return found{};
  }
}
template <class Op, class E, class... Rest>
using reduction_mistake = decltype(find_reduction_mistake<Op, bare<E>, bare<Rest>...>());
template <class Op, class E, class... Rest>
inline constexpr bool reduces = is_fitting<reduction_mistake<Op, E, Rest...>>;

}  // namespace detail

namespace ops {

/// The fold of an expression of rank N along axes, to rank R: with R = N they stay, with extent 1. Fold names the
/// reduction: `reducer<T>`, `name`, whether it needs at least one value, and, where it has a derivative other than that
/// of a sum, `seed`: an elementwise op (value, result, aux) whose derivative in `value` is that of the reduction. One
/// that is the sum of other terms names them, for derivatives: summand(value, n) of n values.
template <class Fold, int N, int R>
struct reduce_op : kernel_op {
  static constexpr const char* name = Fold::name;
  static constexpr bool is_sum = !requires { typename Fold::seed; };
  static constexpr unsigned grad_uses[1] = {is_sum ? uses::nothing : uses::result};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int) { return take::expression; }
  static constexpr bool takes_epilogue = R < N;
  static constexpr bool reverses_elementwise = true, differentiable_twice = is_sum;
  template <class X>
  static constexpr bool has_variants_of =
      floating_element<element_of<X>> && !narrow_element<element_of<X>> &&
      !std::is_same_v<typename Fold::template reducer<element_of<X>>::result, bool> &&
      (sinter::detail::is_tensor<X> || sinter::detail::is_variable<X>);
  template <class T, class...>
  using result = typename Fold::template reducer<T>::result;
  static constexpr int rank(int) { return R; }

  sinter::detail::axis_set axes;

  explicit reduce_op(const sinter::detail::axis_set& along) : axes(along) {}

  /// That of x with an extent of 1 for each axis that is folded.
  extents<N> kept_shape(const extents<N>& x) const {
    extents<N> kept;
    for (int d = 0; d < N; ++d) kept[d] = axes.has[d] ? 1 : x[d];
    return kept;
  }
  extents<R> shape(const extents<N>& x) const {
    extents<R> y;
    index_t n = 1;
    for (int d = 0, to = 0; d < N; ++d) {
      if (axes.has[d]) n *= x[d];
      if (!axes.has[d] || R == N) y[to++] = axes.has[d] ? 1 : x[d];
    }
    if (Fold::needs_values && n == 0 && y.numel() > 0)
      sinter::detail::refuse<shape_error>({name, ": no values along the reduced axes of shape ", x});
    return y;
  }
  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::find_reduction_mistake<Fold, X>();
  }

  /// Backward is one elementwise pass over the shape of x, with the gradient of the result broadcast along the axes.
  template <class X, class Y>
  decltype(auto) derivative_of(const X& x, const Y& value) const {
    if constexpr (!is_sum) {
      const tensor<element_of<Y>, N, device_of<Y>> y = value.reshape(kept_shape(x.shape()));
      return sinter::detail::make_map(typename Fold::seed{}, x, y, Fold::aux(x, y, axes));
    } else if constexpr (requires { Fold::summand(x, index_t{}); }) {
      return Fold::summand(x, sinter::detail::count_reduced(x, axes));
    } else if constexpr (sinter::detail::passes_gradient_on<X>) {
      return (x);
    } else {  // the derivative asks for what was summed, which is nowhere in memory: as an inner value it is recomputed
      return sinter::detail::make_map(sinter::detail::summand_op{}, x);
    }
  }
};

}  // namespace ops

namespace detail {

/// Folds an expression without points over `axes`, keeping them with extent 1; used by derivatives.
template <class Fold, class E>
auto reduce_now(const E& e, const axis_set& axes) {
  using op = ops::reduce_op<Fold, E::rank, E::rank>;
  return kernel_expr<op, E>(op(axes), e).result();
}

template <class Op, class Node>
auto finish_fold(Node node, index_t n) {
  if constexpr (requires { Op::finish(std::move(node), n); }) return Op::finish(std::move(node), n);
  else return node;
}

/// The fold of Op over e, to rank R: to that of e with the axes kept. Where Op has them, prepare(e, axes) gives what is
/// folded and finish(fold, n) what is made of the fold of n values; twice<T> is an op of the same value that can be
/// differentiated twice. Of half and bfloat16 all of it is done in float, and rounded at the end.
template <class Op, int R, class E>
auto make_reduction(E&& e, const axis_set& set) {
  const auto build = [&](auto&& x) {
    constexpr int N = rank_of<decltype(x)>;
    [[maybe_unused]] const index_t n = count_reduced(x, set);
    return finish_fold<Op>(make_kernel(ops::reduce_op<Op, N, R>(set), std::forward<decltype(x)>(x)), n);
  };
  using T = element_of<E>;
  if constexpr (narrow_element<T>) {
    auto folded = make_reduction<Op, R>(cast<float>(std::forward<E>(e)), set);
    if constexpr (std::is_same_v<element_of<decltype(folded)>, float>) return cast<T>(std::move(folded));
    else return folded;
  } else if constexpr (bare<E>::order >= 2 && requires { typename Op::template twice<T>; })
    return make_reduction<typename Op::template twice<T>, R>(std::forward<E>(e), set);
  else if constexpr (requires { Op::prepare(e, set); }) return build(Op::prepare(e, set));
  else return build(std::forward<E>(e));
}

template <class Op, class E>
auto reduce_all(E&& e) {
  check_defined(Op::name, e);
  return make_reduction<Op, 0>(std::forward<E>(e), all_axes<rank_of<E>>());
}
/// The rank of E without N axes. A scalar has one axis, which goes.
template <class E, int N>
inline constexpr int reduced_rank = larger(rank_of<E> - N, 0);
template <class E, std::size_t N>
axis_set axes_to_reduce(const char* op, const index_t (&axes)[N]) {
  static_assert(int{N} <= larger(rank_of<E>, 1), "sinter: this reduction names more axes than its operand has");
  return axes_of(op, axes, int{N}, larger(rank_of<E>, 1));
}
template <class Op, bool Keep, class E, std::size_t N>
auto reduce_axes(E&& e, const index_t (&axes)[N]) {
  check_defined(Op::name, e);
  const axis_set set = axes_to_reduce<E>(Op::name, axes);
  return make_reduction<Op, Keep ? rank_of<E> : reduced_rank<E, int{N}>>(std::forward<E>(e), set);
}

/// The derivative of a reduction as an elementwise op on (value, result, aux): its value is never computed.
struct seed_base {
  static constexpr const char* name = "reduction";
  template <class T, class...>
  using result = T;
  template <class V>
  SINTER_WORD static V apply(V value, V, V) {
    return value;
  }
};

}  // namespace detail
}  // namespace sinter

// Declares name(x), name(x, axis), name(x, {axes...}), the last two with keepdim as well, and rejects what does not
// fit.
#define SINTER_REDUCTION(name, op)                                                                \
  template <class E, class = std::enable_if_t<::sinter::detail::reduces<op, E>>>                  \
  auto name(E&& e) {                                                                              \
    return ::sinter::detail::reduce_all<op>(std::forward<E>(e));                                  \
  }                                                                                               \
  template <class E, class Axis, class... Keep,                                                   \
            class = std::enable_if_t<::sinter::detail::reduces<op, E, Axis, Keep...>>>            \
  auto name(E&& e, Axis axis, Keep...) {                                                          \
    return ::sinter::detail::reduce_axes < op, sizeof...(Keep) != 0, E,                           \
           1 > (std::forward<E>(e), {static_cast<::sinter::index_t>(axis)});                      \
  }                                                                                               \
  template <std::size_t N, class E, class... Keep,                                                \
            class = std::enable_if_t<::sinter::detail::reduces<op, E, int, Keep...>>>             \
  auto name(E&& e, const ::sinter::index_t(&axes)[N], Keep...) {                                  \
    return ::sinter::detail::reduce_axes < op, sizeof...(Keep) != 0 > (std::forward<E>(e), axes); \
  }                                                                                               \
  SINTER_REDUCTION_REJECTIONS(name, op)

// Declares name(x), name(x, axis) and name(x, {axes...}), the last two with keepdim as well, as formula(x, axes...).
// What does not fit is rejected as `op` is.
#define SINTER_FORMULA_REDUCTION(name, op, formula)                                    \
  template <class E, class = std::enable_if_t<::sinter::detail::reduces<op, E>>>       \
  auto name(const E& x) {                                                              \
    return formula(x);                                                                 \
  }                                                                                    \
  template <class E, class Axis, class... Keep,                                        \
            class = std::enable_if_t<::sinter::detail::reduces<op, E, Axis, Keep...>>> \
  auto name(const E& x, Axis axis, Keep... keep) {                                     \
    return formula(x, axis, keep...);                                                  \
  }                                                                                    \
  template <std::size_t N, class E, class... Keep,                                     \
            class = std::enable_if_t<::sinter::detail::reduces<op, E, int, Keep...>>>  \
  auto name(const E& x, const ::sinter::index_t(&axes)[N], Keep... keep) {             \
    return formula(x, axes, keep...);                                                  \
  }                                                                                    \
  SINTER_REDUCTION_REJECTIONS(name, op)

// Declares name(x), name(x, axis), name(x, {axes...}), the last two with keepdim as well, and all of them with `...` as
// a last parameter, called `o`; they are formula<R>(name, x, axes, o), where R is the rank of the result.
#define SINTER_REDUCTION_WITH(name, op, formula, ...)                                                                \
  template <class E, class = std::enable_if_t<::sinter::detail::reduces<op, E>>>                                     \
  auto name(const E& x, __VA_ARGS__) {                                                                               \
    return formula<0>(#name, x, ::sinter::detail::all_axes<::sinter::rank_of<E>>(), o);                              \
  }                                                                                                                  \
  template <class E, class Axis, class = std::enable_if_t<::sinter::detail::reduces<op, E, Axis>>>                   \
  auto name(const E& x, Axis axis, __VA_ARGS__) {                                                                    \
    const ::sinter::index_t axes[] = {static_cast<::sinter::index_t>(axis)};                                         \
    return formula<::sinter::detail::reduced_rank<E, 1>>(#name, x, ::sinter::detail::axes_to_reduce<E>(#name, axes), \
                                                         o);                                                         \
  }                                                                                                                  \
  template <class E, class Axis, class = std::enable_if_t<::sinter::detail::reduces<op, E, Axis>>>                   \
  auto name(const E& x, Axis axis, ::sinter::keepdim_t, __VA_ARGS__) {                                               \
    const ::sinter::index_t axes[] = {static_cast<::sinter::index_t>(axis)};                                         \
    return formula<::sinter::rank_of<E>>(#name, x, ::sinter::detail::axes_to_reduce<E>(#name, axes), o);             \
  }                                                                                                                  \
  template <std::size_t N, class E, class = std::enable_if_t<::sinter::detail::reduces<op, E, int>>>                 \
  auto name(const E& x, const ::sinter::index_t(&axes)[N], __VA_ARGS__) {                                            \
    return formula<::sinter::detail::reduced_rank<E, int{N}>>(#name, x,                                              \
                                                              ::sinter::detail::axes_to_reduce<E>(#name, axes), o);  \
  }                                                                                                                  \
  template <std::size_t N, class E, class = std::enable_if_t<::sinter::detail::reduces<op, E, int>>>                 \
  auto name(const E& x, const ::sinter::index_t(&axes)[N], ::sinter::keepdim_t, __VA_ARGS__) {                       \
    return formula<::sinter::rank_of<E>>(#name, x, ::sinter::detail::axes_to_reduce<E>(#name, axes), o);             \
  }
