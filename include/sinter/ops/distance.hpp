// sinter/ops/distance.hpp: dist, pairwise_distance, cdist, pdist and cosine_similarity: how far apart vectors are.
#pragma once

#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/matmul_axes.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/ops/vector_norm.hpp"

namespace sinter {

/// How cdist finds distances of order 2.
enum class distance_way {
  product_if_large,  ///< by a product where one side has more than 25 vectors, else from differences
  product,           ///< (a - b)^2 = a^2 + b^2 - 2 a b: fast, but of vectors that lie close together rounded coarsely
  differences        ///< accurate
};
/// Behind the operands of cdist.
///
///     cdist(a, b, {.way = distance_way::differences});
struct cdist_options {
  double p = 2;  ///< order of the norm
  distance_way way = distance_way::product_if_large;
};
/// Behind the operands of pairwise_distance.
struct pairwise_distance_options {
  double p = 2;       ///< order of the norm
  double eps = 1e-6;  ///< added to the differences
};

namespace detail {

/// Of two operands with differences that have a norm, and with so many axes.
template <int Least, class A, class B>
constexpr auto find_distance_mistake() {
  if constexpr (!expression<A> || !expression<B>) return no_operands<A, B>{};
  else if constexpr (!fits<ops::subtract_op, A, B>) return mistake_of<ops::subtract_op, A, B>{};
  else if constexpr (!has_reals<A, Least>) return reals_mistake<A, Least>{};
  else return reals_mistake<B, Least>{};
}
template <class A, class B, int Least = 0>
using distance_mistake = decltype(find_distance_mistake<Least, bare<A>, bare<B>>());
template <class A, class B, int Least = 0>
concept has_distance = is_fitting<distance_mistake<A, B, Least>>;

/// Distances of order 2 by a product.
template <class A, class B>
auto distances_by_product(const A& a, const B& b) {
  const auto squares_of_a = eval(sum(square(a), -1, keepdim));
  const auto squares_of_b = eval(sum(square(b), -1)).unsqueeze(-2);
  const auto products = eval(matmul(a, b.transpose()));
  return eval(make_map(ops::root_op{}, clamp_min(squares_of_a + squares_of_b - 2 * products, 0)));
}

}  // namespace detail

/// The norm of order p of a - b, which broadcast: one number, floating point, as vector_norm gives it.
///
///     tensor far = dist(a, b);
template <class A, class B>
  requires(detail::has_distance<A, B>)
auto dist(const A& a, const B& b, double p = 2) {
  detail::check_defined("dist", a);
  detail::check_defined("dist", b);
  const auto difference = a - b;
  return detail::norm_of_order<0>("dist", difference, p, detail::all_axes<rank_of<decltype(difference)>>());
}

/// The distances of vectors, the last axis of a and b, which broadcast: (…,m) => (…); with keepdim the axis stays with
/// extent 1. It is the norm of a - b + eps. Floating point; runs at once. Derivative: that of vector_norm.
///
///     tensor far = pairwise_distance(a, b, {.p = 1});
template <class A, class B>
  requires(detail::has_distance<A, B, 1>)
auto pairwise_distance(const A& a, const B& b, const pairwise_distance_options& o = {}) {
  return detail::norm_along<false, 1>("pairwise_distance", a - b + o.eps, o.p, {-1});
}
template <class A, class B>
  requires(detail::has_distance<A, B, 1>)
auto pairwise_distance(const A& a, const B& b, keepdim_t, const pairwise_distance_options& o = {}) {
  return detail::norm_along<true, 1>("pairwise_distance", a - b + o.eps, o.p, {-1});
}

/// The distances of all vectors of a to all of b: (…,n,m) and (…,k,m) => (…,n,k), where axes before the last two
/// broadcast. Floating point; runs at once. No differences are stored. Derivative: that of vector_norm, 0 where two
/// vectors are equal. Errors: shape_error for vectors that differ in length, value_error for an order below 0.
///
///     tensor far = cdist(points, centres);
template <class A, class B>
  requires(detail::has_distance<A, B, 2>)
auto cdist(const A& a, const B& b, const cdist_options& o = {}) {
  detail::check_defined("cdist", a);
  detail::check_defined("cdist", b);
  const index_t m = a.shape()[rank_of<A> - 1], n = a.shape()[rank_of<A> - 2], k = b.shape()[rank_of<B> - 2];
  if (m != b.shape()[rank_of<B> - 1])
    detail::refuse<shape_error>({"cdist: vectors of ", m, " and of ", b.shape()[rank_of<B> - 1], " elements, shapes ",
                                 a.shape(), " and ", b.shape()});
  if (!(o.p >= 0)) detail::refuse<value_error>({"cdist: the order is ", o.p, "; it must be 0 or more"});
  const auto x = detail::eval_to_read(a);
  const auto y = detail::eval_to_read(b);
  const bool is_large = o.way == distance_way::product_if_large && (n > 25 || k > 25);
  if (o.p == 2 && (is_large || o.way == distance_way::product)) return detail::distances_by_product(x, y);
  const double order = m > 0 ? o.p : 2;  // vectors without elements are equal
  return detail::norm_along<false, 1>("cdist", x.unsqueeze(-2) - y.unsqueeze(-3), order, {-1});
}

/// The distances of the vectors of a matrix to each other, those behind each: (n,m) => (n (n - 1) / 2), of 0 and 1, 0
/// and 2, ... . Floating point; runs at once. Derivative and errors: those of cdist.
///
///     tensor far = pdist(points);
template <class X>
  requires(detail::has_reals<X, 2, 2>)
auto pdist(const X& x, double p = 2) {
  const auto value = detail::eval_to_read(x);
  const index_t n = value.shape()[0];
  std::vector<std::int64_t> places;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i + 1; j < n; ++j) places.push_back(i * n + j);
  const auto index = from_data<std::int64_t, device_of<X>>(places, {static_cast<index_t>(places.size())});
  return index_select(cdist(value, value, {.p = p, .way = distance_way::differences}).flatten(), 0, index);
}

/// The cosines of the angles between vectors along an axis of a and b, which broadcast: sum(a b) over the product of
/// the norms, each `eps` at least: (n,m) along 1 => (n). Floating point; runs at once. Derivative: that of the formula.
/// Errors: index_error for an axis that they do not have.
///
///     tensor alike = cosine_similarity(queries, keys);
template <class A, class B>
  requires(detail::has_distance<A, B, 1>)
auto cosine_similarity(const A& a, const B& b, detail::whole axis = 1, double eps = 1e-8) {
  constexpr int R = detail::larger(rank_of<A>, rank_of<B>);
  detail::check_defined("cosine_similarity", a);
  detail::check_defined("cosine_similarity", b);
  const auto shape = (a - b).shape();
  const index_t axes[1] = {detail::checked_axis("cosine_similarity", axis, R)};
  const auto direction = [&](const auto& operand) {
    const auto value = detail::eval_to_read(operand);
    const auto x =
        value.shape().numel() == shape.numel() ? value.reshape(shape.values) : value.broadcast_to(shape.values);
    return eval(x / clamp_min(norm(x, axes, keepdim), eps));
  };
  return eval(sum(direction(a) * direction(b), axes));
}

#define SINTER_DISTANCE_REJECTIONS(name, least)                                                                       \
  template <class A, class B, class... More, class Problem = typename detail::distance_mistake<A, B, least>::problem, \
            class Fix = typename detail::distance_mistake<A, B, least>::fix>                                          \
  void name(A&&, B&&, More&&...) = delete;
SINTER_DISTANCE_REJECTIONS(dist, 0)
SINTER_DISTANCE_REJECTIONS(pairwise_distance, 1)
SINTER_DISTANCE_REJECTIONS(cdist, 2)
SINTER_DISTANCE_REJECTIONS(cosine_similarity, 1)
SINTER_FIRST_OPERAND_REJECTIONS(pdist, reals_mistake, 2, 2)
#undef SINTER_DISTANCE_REJECTIONS

}  // namespace sinter
