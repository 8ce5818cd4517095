// sinter/ops/detail/reduction.hpp: the expression behind sum, max, ...: reduces an expression along axes, with what
// precedes and follows it.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/expr/reducer.hpp"
#include "sinter/grad/second_order.hpp"
#include "sinter/ops/cast.hpp"

namespace sinter {

/// As last argument of a reduction: reduced axes stay, with extent 1.
///
///     tensor centred = x - mean(x, 1, keepdim);
struct keepdim_t {};
inline constexpr keepdim_t keepdim{};

namespace detail {

/// Which axes a reduction removes.
struct axis_set {
  bool has[max_rank] = {};
};

template <int R>
axis_set axes_of(const char* op, const index_t* axes, int count) {
  axis_set set;
  for (int i = 0; i < count; ++i) {
    const int a = checked_axis(op, axes[i], R);
    if (set.has[a]) refuse<index_error>({op, ": axis ", axes[i], " is named twice"});
    set.has[a] = true;
  }
  return set;
}

template <int R>
axis_set all_axes() {
  axis_set set;
  for (int d = 0; d < R; ++d) set.has[d] = true;
  return set;
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

/// Op names the reduction: `reducer<T>`, `name`, whether it needs at least one value, and, where it has a derivative
/// other than that of a sum, `seed`: an elementwise op (value, result, aux) whose derivative in `value` is that of the
/// reduction.
template <class Op, class E, int R>
struct [[nodiscard]] reduce_expr
    : detail::point_base<reduce_expr<Op, E, R>, typename Op::template reducer<element_of<E>>::result, R, device_of<E>,
                         Op::differentiable && floating_element<element_of<E>> ? E::order : 0> {
  using T = element_of<E>;
  using reducer = typename Op::template reducer<T>;
  using Out = typename reducer::result;
  using D = device_of<E>;
  static constexpr int points = 1 + detail::points_in<E>;
  static constexpr bool is_sum = !requires { typename Op::seed; };
  static constexpr bool differentiable_twice = is_sum;
  using base = detail::point_base<reduce_expr, Out, R, D, Op::differentiable && floating_element<T> ? E::order : 0>;
  static constexpr bool takes_epilogue = R < E::rank && is_sum;
  static constexpr bool has_variants = floating_element<T> && !narrow_element<T> && !std::is_same_v<Out, bool> &&
                                       (detail::is_tensor<E> || detail::is_variable<E>);
  static constexpr const char* explained_as() { return Op::name; }

  reduce_expr(E x, const detail::axis_set& set, bool keep) : e(std::move(x)), axes(set) {
    index_t n = 1;
    for (int d = 0, to = 0; d < E::rank; ++d) {
      if (axes.has[d]) n *= e.shape()[d];
      kept_[d] = axes.has[d] ? 1 : e.shape()[d];
      if (!axes.has[d] || keep) this->shape_[to++] = kept_[d];
    }
    if (Op::needs_values && n == 0 && this->shape_.numel() > 0)
      detail::refuse<shape_error>({Op::name, ": no values along the reduced axes of shape ", e.shape()});
  }

  template <class Epilogue>
  void compute_into(const tensor<Out, R, D>& to, const Epilogue* epilogue) const {
    auto&& ready = detail::materialise(e);
    using Ready = detail::bare<decltype(ready)>;
    detail::backend<D>::template reduce<reducer, T>(
        detail::lower<false>(ready), detail::shape_upto<Ready::rank>(ready.shape()), detail::leaves_of<Ready>(ready),
        axes.has, detail::access::data(to), epilogue);
  }

  /// Backward is one elementwise pass over the shape of e, with the gradient of the result broadcast along the axes.
  auto record(const tensor<Out, R, D>& value) const {
    if (!detail::recording()) return detail::unrecorded<base::order>(value);
    auto&& ready = detail::materialise(e);
    if constexpr (is_sum) {
      if constexpr (detail::passes_gradient_on<detail::bare<decltype(ready)>>)
        return finish_record(value, detail::make_statement(ready), ready.shape());
      else  // the derivative asks for what was summed, which is nowhere in memory: as an inner value it is recomputed
        return finish_record(value, detail::make_statement(detail::make_map(detail::summand_op{}, ready)),
                             ready.shape());
    } else {
      const tensor<Out, E::rank, D> result = value.reshape(kept_);
      const auto aux = Op::aux(ready, result, axes);
      return finish_record(value, detail::make_statement(detail::make_map(typename Op::seed{}, ready, result, aux)),
                           ready.shape());
    }
  }

  E e;
  detail::axis_set axes;

 private:
  template <class Node>
  auto finish_record(const tensor<Out, R, D>& value, std::unique_ptr<Node> node, const extents<E::rank>& space) const {
    if (!node) return detail::unrecorded<base::order>(value);
    node->name = Op::name;
    node->set_space(space, kept_);
    if constexpr (base::order >= 2) node->widen = &detail::widened_gradient<Out, R, E::rank, D>;
    return detail::produced<base::order>(value, std::move(node));
  }

  extents<E::rank> kept_;
};

namespace detail {

/// Folds an expression without points over `axes`, keeping them with extent 1; used by derivatives.
template <class Op, class E>
auto reduce_now(const E& e, const axis_set& axes) {
  return reduce_expr<Op, E, E::rank>(e, axes, true).result();
}

template <class Op, class Node>
auto finish_fold(Node node, index_t n) {
  if constexpr (requires { Op::finish(std::move(node), n); }) return Op::finish(std::move(node), n);
  else return node;
}

/// The fold of Op over e. Where Op has them, prepare(e, axes) gives what is folded and finish(fold, n) what is made of
/// the fold of n values. Of half and bfloat16 all of it is done in float, and rounded at the end.
template <class Op, int R, class E>
auto make_reduction(E&& e, const axis_set& set, bool keep) {
  const auto build = [&](auto&& x) {
    using X = bare<decltype(x)>;
    index_t n = 1;
    for (int d = 0; d < X::rank; ++d) n *= set.has[d] ? x.shape()[d] : 1;
    reduce_expr<Op, X, R> node(std::forward<decltype(x)>(x), set, keep);
    return finish_fold<Op>(std::move(node), n);
  };
  using T = element_of<E>;
  if constexpr (narrow_element<T>) {
    auto folded = make_reduction<Op, R>(cast<float>(std::forward<E>(e)), set, keep);
    if constexpr (std::is_same_v<element_of<decltype(folded)>, float>) return cast<T>(std::move(folded));
    else return folded;
  } else if constexpr (requires { Op::prepare(e, set); }) return build(Op::prepare(e, set));
  else return build(std::forward<E>(e));
}

template <class Op, class E>
auto reduce_all(E&& e) {
  check_defined(Op::name, e);
  return make_reduction<Op, 0>(std::forward<E>(e), all_axes<rank_of<E>>(), false);
}
template <class Op, bool Keep, class E, std::size_t N>
auto reduce_axes(E&& e, const index_t (&axes)[N]) {
  constexpr int rank = rank_of<E>;
  constexpr int count = int{N};
  static_assert(count <= rank, "sinter: this reduction names more axes than its operand has");
  check_defined(Op::name, e);
  const axis_set set = axes_of<rank>(Op::name, axes, count);
  return make_reduction<Op, Keep ? rank : larger(rank - count, 0)>(std::forward<E>(e), set, Keep);
}

/// The derivative of a reduction as an elementwise op on (value, result, aux): its value is never computed.
struct seed_base {
  static constexpr const char* name = "reduction";
  template <class T, class...>
  using result = T;
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
  else return find_axis_mistake(std::type_identity<Rest>()...);
}
template <class Op, class E, class... Rest>
using reduction_mistake = decltype(find_reduction_mistake<Op, bare<E>, bare<Rest>...>());
template <class Op, class E, class... Rest>
inline constexpr bool reduces = is_fitting<reduction_mistake<Op, E, Rest...>>;

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
