// sinter/ops/layer_norm.hpp: rows of mean 0 and variance 1.
#pragma once

#include <initializer_list>

#include "sinter/ops/add.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/row_op.hpp"

namespace sinter {

struct use_a_weight_and_a_bias_of_one_rank_from_1_to_that_of_x;

namespace ops {

/// Base of an op whose rows take `axis` and all axes behind it.
struct last_axes_op : row_op {
  using row_op::row_op;
  template <int R>
  index_t row_length(const extents<R>& x) const {
    index_t n = 1;
    for (int d = axis; d < R; ++d) n *= x[d];
    return n;
  }
  template <int R>
  bool has_rows_side_by_side(const extents<R>&) const {
    return true;
  }
};

/// What the gradients of layer_norm and rms_norm are, with the mean of g taken off or not.
template <class Row, class C>
SINTER_WORD void reverse_norm(const Row& r, C mean) {
  const auto y = r.result(), g = r.gradient();
  const C slope = r.sum(over(y, g, [](auto a, auto b) SINTER_INLINE_LAMBDA { return a * b; })) / r.count(),
          factor = r.saved();
  r.put(over(y, g, [=](auto a, auto b) SINTER_INLINE_LAMBDA { return factor * (b - mean - a * slope); }));
}

struct layer_norm_op : last_axes_op {
  static constexpr const char* name = "layer_norm";
  static constexpr bool saves_row_factor = true;
  double eps;
  layer_norm_op(int first, double e) : last_axes_op(first), eps(e) {}

  template <class Row>
  SINTER_WORD auto forward(const Row& r) const {
    using C = typename Row::value_type;
    const auto x = r.keep(r.x());
    const C mean = mean_of(r, x);
    return r.finish(x, {.shift = mean, .scale = root_mean_square_factor(r, x, mean, math::constant<C>(eps))});
  }
  template <class Row>
  SINTER_WORD void reverse(const Row& r) const {
    reverse_norm(r, r.sum(r.gradient()) / r.count());
  }
};

}  // namespace ops

namespace detail {

inline double checked_eps(const char* op, double eps) {
  if (!(eps >= 0) || !std::isfinite(eps))
    refuse<value_error>({op, ": eps is ", eps, "; it must be a finite number, 0 or more"});
  return eps;
}

/// The rank of a weight or a bias; 0 of an eps.
template <class W>
inline constexpr int rank_in_norm = 0;
template <expression W>
inline constexpr int rank_in_norm<W> = rank_of<W>;

/// fitting<T>, or what is wrong with what follows X in a call of a norm of rows: a weight, a bias, eps.
template <class Op, class X>
constexpr auto find_row_norm_mistake() {
  return kernel_check<Op, X>{};
}
template <class Op, class X, class W, class... B>
constexpr auto find_row_norm_mistake() {
  if constexpr (!takes_operands<Op, X>) return kernel_check<Op, X>{};
  else if constexpr (!expression<W> || !((expression<B> || std::is_arithmetic_v<B>) && ...))
    return no_operands<W, B...>{};
  else if constexpr (!std::is_same_v<operand_check<X, W, B...>, fitting<element_of<X>>>)
    return operand_check<X, W, B...>{};
  else if constexpr (rank_of<W> < 1 || rank_of<W> > rank_of<X> ||
                     ((expression<B> && rank_in_norm<B> != rank_of<W>) || ...))
    return mistake<operands_of_ranks<rank_of<X>, rank_of<W>, rank_in_norm<B>...>,
                   use_a_weight_and_a_bias_of_one_rank_from_1_to_that_of_x>{};
  else return fitting<element_of<X>>{};
}
template <class Op, class X, class... More>
using row_norm_mistake = decltype(find_row_norm_mistake<Op, bare<X>, bare<More>...>());

/// The extents of the last axes of a norm, in braces or as another tensor's shape.
class row_extents {
 public:
  row_extents() = default;  ///< the last axis, whatever its extent
  row_extents(std::initializer_list<index_t> each)
      : row_extents(as_written(each.begin()), static_cast<int>(each.size())) {}
  template <int K>
  row_extents(const extents<K>& each) : row_extents(each.begin(), K) {}  // NOLINT: implicit on purpose

  /// The first of these axes of x. Throws where x has others.
  template <class E>
  int first_axis(const char* op, const E& x) const {
    check_defined(op, x);
    if (count_ == 0) return rank_of<E> - 1;
    bool fits = count_ > 0 && count_ <= rank_of<E>;
    for (int d = 0; fits && d < count_; ++d) fits = each_[d] == x.shape()[rank_of<E> - count_ + d];
    if (!fits)
      refuse<shape_error>({op, ": rows of shape ", shape_piece{each_, count_}, " are not the last axes of x of shape ",
                           x.shape(), "; pass the extents of one or more of these"});
    return rank_of<E> - count_;
  }

 private:
  row_extents(const index_t* each, int count) : count_(count < max_rank ? count : max_rank) {
    for (int d = 0; d < count_; ++d) each_[d] = each[d];
  }
  int count_ = 0;
  index_t each_[std::size_t{max_rank}] = {};
};

/// The first of the axes that a weight is for; it has the shape of the last ones, and so has a bias.
template <class E, class W, class... B>
int first_axis_of_weight(const char* op, const E& x, const W& weight, const B&... bias) {
  check_defined(op, x);
  constexpr int first = rank_of<E> - rank_of<W>;
  const auto check_one = [&](const char* what, const auto& w) {
    check_defined(op, w);
    for (int d = first; d < rank_of<E>; ++d)
      if (w.shape()[d - first] != x.shape()[d])
        refuse<shape_error>({op, ": a ", what, " of shape ", w.shape(), " for x of shape ", x.shape(),
                             "; it must have the shape of the last axes of x"});
  };
  check_one("weight", weight);
  (check_one("bias", bias), ...);
  return first;
}

template <class Op, class E>
kernel_of<Op, E> normalise_rows(int first, E&& x, double eps) {
  return make_kernel(Op(first, checked_eps(Op::name, eps)), std::forward<E>(x));
}

}  // namespace detail

/// (x - mean) / sqrt(variance + eps) along the last axis, with the biased variance and eps 1e-5.
/// Floating point, any rank from 1. A row is read once into cache together with the elementwise work that produces it.
/// With f = 1 / sqrt(variance + eps), derivative: f (g - mean(g) - y mean(g y)). Ba, Kiros, Hinton, "Layer
/// normalization", 2016. Errors: value_error for a negative or non-finite eps.
///
///     tensor y = layer_norm(x);
template <class E, class Eps>
  requires(detail::takes_operands<ops::layer_norm_op, E> && std::is_arithmetic_v<Eps>)
detail::kernel_of<ops::layer_norm_op, E> layer_norm(E&& x, Eps eps) {
  return detail::normalise_rows<ops::layer_norm_op>(rank_of<E> - 1, std::forward<E>(x), static_cast<double>(eps));
}

/// The same along the last axes, of which `shape` has the extents, as PyTorch's normalized_shape: in braces, or the
/// shape of another tensor. Errors: shape_error where x has other last axes.
///
///     tensor y = layer_norm(x, {2, 3});  // rows of 6 elements
template <class E>
  requires detail::takes_operands<ops::layer_norm_op, E>
detail::kernel_of<ops::layer_norm_op, E> layer_norm(E&& x, const detail::row_extents& shape = {}, double eps = 1e-5) {
  const int first = shape.first_axis("layer_norm", x);
  return detail::normalise_rows<ops::layer_norm_op>(first, std::forward<E>(x), eps);
}

/// layer_norm(x, shape, eps) * weight + bias, where `shape` is that of weight and bias: with rank K rows are the last K
/// axes. Without gradients one pass. Errors: shape_error for a weight or bias of another
/// shape than the last axes of x.
///
///     tensor y = layer_norm(x, gain, bias);
template <class E, class W, class B>
  requires(expression<B> && detail::is_fitting<detail::row_norm_mistake<ops::layer_norm_op, E, W, B>>)
auto layer_norm(E&& x, W&& weight, B&& bias, double eps = 1e-5) {
  const int first = detail::first_axis_of_weight("layer_norm", x, weight, bias);
  return detail::normalise_rows<ops::layer_norm_op>(first, std::forward<E>(x), eps) * std::forward<W>(weight) +
         std::forward<B>(bias);
}
/// The same without a bias.
template <class E, class W>
  requires(detail::is_fitting<detail::row_norm_mistake<ops::layer_norm_op, E, W>>)
auto layer_norm(E&& x, W&& weight, double eps = 1e-5) {
  const int first = detail::first_axis_of_weight("layer_norm", x, weight);
  return detail::normalise_rows<ops::layer_norm_op>(first, std::forward<E>(x), eps) * std::forward<W>(weight);
}
/// The same with PyTorch's normalized_shape beside, which is that of the weight. Errors: shape_error where it is not.
template <class E, class W, class B>
  requires(expression<B> && detail::is_fitting<detail::row_norm_mistake<ops::layer_norm_op, E, W, B>>)
auto layer_norm(E&& x, const detail::row_extents& shape, W&& weight, B&& bias, double eps = 1e-5) {
  if (shape.first_axis("layer_norm", x) != rank_of<E> - rank_of<W>)
    detail::refuse<shape_error>(
        {"layer_norm: a weight of shape ", weight.shape(), " has another rank than normalized_shape"});
  return layer_norm(std::forward<E>(x), std::forward<W>(weight), std::forward<B>(bias), eps);
}
template <class E, class... More,
          class Problem = typename detail::row_norm_mistake<ops::layer_norm_op, E, More...>::problem,
          class Fix = typename detail::row_norm_mistake<ops::layer_norm_op, E, More...>::fix>
void layer_norm(E&&, More&&...) = delete;

}  // namespace sinter
