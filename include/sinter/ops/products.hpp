// sinter/ops/products.hpp: products by PyTorch's names: mm, bmm, outer, a product that is added to a tensor, cross,
// kron and bilinear.
#pragma once

#include "sinter/ops/concat.hpp"
#include "sinter/ops/dot.hpp"
#include "sinter/ops/matmul_axes.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter {

template <int...>
struct product_of_ranks;
template <int...>
struct use_operands_of_ranks;
template <int Least, int Most>
struct use_operands_of_one_rank;
struct use_an_operand_that_broadcasts_to_the_product;
struct x1_and_x2_of_one_rank_from_1_and_w_of_rank_3;

namespace detail {

/// Of operands that are multiplied, whatever their ranks.
template <class... A>
constexpr auto find_factor_mistake() {
  if constexpr (!(expression<A> && ...)) return no_operands<A...>{};
  else if constexpr (!fits<product_op, A...>) return mistake_of<product_op, A...>{};
  else if constexpr ((reads_name<A> || ...))
    return mistake<product_of_a_value_that_let_names, evaluate_it_before_let>{};
  else return fitting<literals_type<A...>>{};
}
template <class... A>
using factor_mistake = decltype(find_factor_mistake<bare<A>...>());
template <class... A>
concept are_factors = is_fitting<factor_mistake<A...>>;

/// Fits says whether the ranks do; Fix is the message where they do not.
template <class Fits, class Fix, class... A>
constexpr auto find_ranks_mistake() {
  if constexpr (!are_factors<A...>) {
    return factor_mistake<A...>{};
  } else {
    constexpr int ranks[] = {rank_of<A>...};
    if constexpr (!Fits::holds(ranks)) return mistake<product_of_ranks<rank_of<A>...>, Fix>{};
    else return fitting<literals_type<A...>>{};
  }
}

template <int RA, int RB>
struct are_of_ranks {
  static constexpr bool holds(const int* r) { return r[0] == RA && r[1] == RB; }
};
/// Of products of an A of rank RA and a B of rank RB.
template <int RA, int RB, class A, class B>
using product_mistake =
    decltype(find_ranks_mistake<are_of_ranks<RA, RB>, use_operands_of_ranks<RA, RB>, bare<A>, bare<B>>());
template <int RA, int RB, class A, class B>
concept has_product = is_fitting<product_mistake<RA, RB, A, B>>;

template <int R, int RA, int RB, class X, class A, class B>
constexpr auto find_added_mistake() {
  if constexpr (!are_factors<X, A, B>) return factor_mistake<X, A, B>{};
  else if constexpr (!has_product<RA, RB, A, B>) return product_mistake<RA, RB, A, B>{};
  else if constexpr (rank_of<X> > R)
    return mistake<product_of_ranks<rank_of<X>, rank_of<A>, rank_of<B>>,
                   use_an_operand_that_broadcasts_to_the_product>{};
  else return fitting<element_of<A>>{};
}
/// Of an X that is added to a product of rank R.
template <int R, int RA, int RB, class X, class A, class B>
using added_mistake = decltype(find_added_mistake<R, RA, RB, bare<X>, bare<A>, bare<B>>());
template <int R, int RA, int RB, class X, class A, class B>
concept is_added = is_fitting<added_mistake<R, RA, RB, X, A, B>>;

struct are_of_one_rank {
  static constexpr bool holds(const int* r) { return r[0] == r[1] && r[0] >= 1; }
};
template <class A, class B>
using cross_mistake =
    decltype(find_ranks_mistake<are_of_one_rank, use_operands_of_one_rank<1, max_rank>, bare<A>, bare<B>>());

struct have_a_kron {
  static constexpr bool holds(const int* r) { return r[0] == r[1] && 2 * r[0] <= max_rank; }
};
template <class A, class B>
using kron_mistake =
    decltype(find_ranks_mistake<have_a_kron, use_operands_of_one_rank<0, max_rank / 2>, bare<A>, bare<B>>());

struct are_bilinear {
  static constexpr bool holds(const int* r) { return r[0] == r[1] && r[0] >= 1 && r[2] == 3; }
};
template <class A, class B, class W, class... Bias>
using bilinear_mistake = decltype(find_ranks_mistake<are_bilinear, x1_and_x2_of_one_rank_from_1_and_w_of_rank_3,
                                                     bare<A>, bare<B>, bare<W>, bare<Bias>...>());

/// As the value of P, a variable where E is one.
template <class P, class E>
using value_beside =
    typename result_of_point<element_of<P>, rank_of<P>, device_of<P>, larger(bare<P>::order, bare<E>::order)>::type;

/// beta x + alpha product, in the pass of the product.
template <class X, class P>
value_beside<P, X> add_to_product(const char* op, const X& x, const P& product, double beta, double alpha) {
  using T = compute_type<element_of<P>>;
  check_defined(op, x);
  extents<rank_of<P>> shape = product.shape();
  if (!broadcast_into(shape.values, rank_of<P>, x.shape().data(), rank_of<X>) || !(shape == product.shape()))
    refuse<shape_error>(
        {op, ": x of shape ", x.shape(), " does not broadcast to the product's shape ", product.shape()});
  const T a = literal_value<T>(alpha), b = literal_value<T>(beta);
  if (b == T(0)) return value_as<value_beside<P, X>>(a * product);
  return eval(b * x + a * product);
}

/// The element at place i along an axis, which stays, with extent 1.
template <class X>
auto one_slice(const X& x, int axis, index_t i) {
  return x.slice(axis, i, i + 1);
}

SINTER_SHARED void check_cross(shape_piece a, shape_piece b, int axis);
SINTER_SHARED void check_bilinear(shape_piece a, shape_piece b, shape_piece w);
SINTER_SHARED void check_bilinear_bias(shape_piece w, shape_piece bias);
#if SINTER_DEFINES
SINTER_SHARED void check_cross(shape_piece a, shape_piece b, int axis) {
  if (a.extents[axis] != 3 || b.extents[axis] != 3)
    refuse<shape_error>({"cross: shapes ", a, " and ", b, "; both must have 3 elements on axis ", axis});
}
SINTER_SHARED void check_bilinear(shape_piece a, shape_piece b, shape_piece w) {
  for (int d = 0; d + 1 < a.rank; ++d)
    if (a.extents[d] != b.extents[d])
      refuse<shape_error>({"bilinear: shapes ", a, " and ", b, " differ before their last axis"});
  if (a.extents[a.rank - 1] != w.extents[1] || b.extents[b.rank - 1] != w.extents[2])
    refuse<shape_error>({"bilinear: w of shape ", w, " is not for x1 and x2 of shapes ", a, " and ", b,
                         "; it must be (outputs,", a.extents[a.rank - 1], ",", b.extents[b.rank - 1], ")"});
}
SINTER_SHARED void check_bilinear_bias(shape_piece w, shape_piece bias) {
  if (bias.rank != 1 || bias.extents[0] != w.extents[0])
    refuse<shape_error>(
        {"bilinear: a bias of shape ", bias, " for ", w.extents[0], " outputs; it must be (", w.extents[0], ",)"});
}
#endif  // SINTER_DEFINES

}  // namespace detail

/// matmul of two matrices, (M,K) x (K,N) => (M,N), and of nothing else.
///
///     tensor y = mm(a, b);
template <class A, class B>
  requires(detail::has_product<2, 2, A, B>)
auto mm(A&& a, B&& b) {
  return matmul(std::forward<A>(a), std::forward<B>(b));
}
/// matmul of two batches of matrices, (B,M,K) x (B,K,N) => (B,M,N), and of nothing else.
///
///     tensor y = bmm(signals, spread);
template <class A, class B>
  requires(detail::has_product<3, 3, A, B>)
auto bmm(A&& a, B&& b) {
  return matmul(std::forward<A>(a), std::forward<B>(b));
}

/// Each element of a times each of b: (N) x (M) => (N,M). Elementwise, in one pass with what stands around it.
///
///     tensor table = outer(gain, direction);
template <class A, class B>
  requires(detail::has_product<1, 1, A, B>)
auto outer(A&& a, B&& b) {
  detail::check_defined("outer", a);
  detail::check_defined("outer", b);
  return detail::eval_to_read(std::forward<A>(a)).unsqueeze(1) * detail::eval_to_read(std::forward<B>(b)).unsqueeze(0);
}
/// outer by its other name.
///
///     tensor table = ger(gain, direction);
template <class A, class B>
  requires(detail::has_product<1, 1, A, B>)
auto ger(A&& a, B&& b) {
  return outer(std::forward<A>(a), std::forward<B>(b));
}

/// beta x + alpha a b of matrices (M,K) x (K,N), where x broadcasts to (M,N). Runs at once, the sum in the pass of the
/// product. Where beta is 0, x is not read: infinities and NaN in it do not matter, and it gets no gradient.
/// Derivative: dx = beta g, da = alpha g b^T, db = alpha a^T g. Errors: shape_error where extents do not fit,
/// value_error for a fraction with integer elements.
///
///     tensor y = addmm(bias, x, w);
///     tensor z = addmm(bias, x, w, {.beta = 0.5, .alpha = 2});  // or 0.5, 2
template <class X, class A, class B>
  requires(detail::is_added<2, 2, 2, X, A, B>)
auto addmm(const X& x, A&& a, B&& b, const product_options& o = {}) {
  return detail::add_to_product("addmm", x, matmul(std::forward<A>(a), std::forward<B>(b)), o.beta, o.alpha);
}
/// beta x + alpha a b of batches of matrices (B,M,K) x (B,K,N), where x broadcasts to (B,M,N); as addmm.
///
///     tensor y = baddbmm(x, signals, spread, 0.5);
template <class X, class A, class B>
  requires(detail::is_added<3, 3, 3, X, A, B>)
auto baddbmm(const X& x, A&& a, B&& b, const product_options& o = {}) {
  return detail::add_to_product("baddbmm", x, matmul(std::forward<A>(a), std::forward<B>(b)), o.beta, o.alpha);
}
/// beta x + alpha times the sum of the products of batches (B,M,K) x (B,K,N), where x broadcasts to (M,N); as addmm. It
/// is one product of (M,B K) x (B K,N).
///
///     tensor y = addbmm(x, signals, spread);
template <class X, class A, class B>
  requires(detail::is_added<2, 3, 3, X, A, B>)
auto addbmm(const X& x, A&& a, B&& b, const product_options& o = {}) {
  detail::check_defined("addbmm", a);
  detail::check_defined("addbmm", b);
  const auto left = detail::eval_to_read(std::forward<A>(a));
  const auto right = detail::eval_to_read(std::forward<B>(b));
  const auto m = left.shape(), n = right.shape();
  if (m[0] != n[0] || m[2] != n[1])
    detail::refuse<shape_error>({"addbmm: shapes ", m, " and ", n,
                                 " do not fit: the batches must be equal, and the last extent of the first the middle "
                                 "one of the second"});
  return detail::add_to_product(
      "addbmm", x, matmul(left.permute({1, 0, 2}).reshape({m[1], m[0] * m[2]}), right.reshape({n[0] * n[1], n[2]})),
      o.beta, o.alpha);
}
/// beta x + alpha a b of a matrix and a vector, (M,K) x (K), where x broadcasts to (M); as addmm.
///
///     tensor y = addmv(bias, a, gain);
template <class X, class A, class B>
  requires(detail::is_added<1, 2, 1, X, A, B>)
auto addmv(const X& x, A&& a, B&& b, const product_options& o = {}) {
  return detail::add_to_product("addmv", x, matmul(std::forward<A>(a), std::forward<B>(b)), o.beta, o.alpha);
}
/// beta x + alpha outer(a, b), where x broadcasts to (N,M); as addmm, and elementwise.
///
///     tensor y = addr(x, gain, direction);
template <class X, class A, class B>
  requires(detail::is_added<2, 1, 1, X, A, B>)
auto addr(const X& x, A&& a, B&& b, const product_options& o = {}) {
  return detail::add_to_product("addr", x, outer(std::forward<A>(a), std::forward<B>(b)), o.beta, o.alpha);
}

/// The vector products of vectors that lie along an axis, as torch.linalg.cross: both have 3 elements there, and
/// broadcast along the others. Runs at once. Errors: shape_error for another extent, index_error for an axis that is
/// not there.
///
///     tensor normals = cross(x, y);  // (N,3) x (N,3) => (N,3)
template <class A, class B>
  requires(detail::is_fitting<detail::cross_mistake<A, B>>)
auto cross(A&& a, B&& b, detail::whole axis = -1) {
  detail::check_defined("cross", a);
  detail::check_defined("cross", b);
  const int at = detail::checked_axis("cross", axis, rank_of<A>);
  const auto x = detail::eval_to_read(std::forward<A>(a));
  const auto y = detail::eval_to_read(std::forward<B>(b));
  detail::check_cross({x.shape().data(), rank_of<A>}, {y.shape().data(), rank_of<B>}, at);
  const auto part = [&](index_t i, index_t j) {
    return detail::one_slice(x, at, i) * detail::one_slice(y, at, j) -
           detail::one_slice(x, at, j) * detail::one_slice(y, at, i);
  };
  return concat(at, part(1, 2), part(2, 0), part(0, 1));
}

/// The Kronecker product: each element of a times all of b, as a block in its place: (n,m) x (p,q) => (n p,m q).
/// Operands have one rank, from 0 to 4. Runs at once.
///
///     tensor blocks = kron(eye<float>(3), b);
template <class A, class B>
  requires(detail::is_fitting<detail::kron_mistake<A, B>>)
auto kron(A&& a, B&& b) {
  constexpr int R = rank_of<A>;
  detail::check_defined("kron", a);
  detail::check_defined("kron", b);
  const auto x = detail::eval_to_read(std::forward<A>(a));
  const auto y = detail::eval_to_read(std::forward<B>(b));
  if constexpr (R == 0) {
    return eval(x * y);
  } else {
    extents<2 * R> of_x = detail::ones_extents<2 * R>(), of_y = of_x;
    extents<R> shape;
    for (int d = 0; d < R; ++d) {
      of_x[2 * d] = x.shape()[d];
      of_y[2 * d + 1] = y.shape()[d];
      shape[d] = x.shape()[d] * y.shape()[d];
    }
    return eval(x.reshape(of_x.values) * y.reshape(of_y.values)).reshape(shape.values);
  }
}

/// y[..., o] = the sum of x1[..., i] w[o, i, j] x2[..., j], plus a bias, as torch.nn.functional.bilinear: (…,I), (…,J),
/// (out,I,J) and (out,) => (…,out). Runs at once: all products x1[i] x2[j] are multiplied with w in one product.
/// Errors: shape_error where extents do not fit.
///
///     tensor y = bilinear(a, b, taps, bias);
template <class A, class B, class W, class... Bias>
  requires(sizeof...(Bias) <= 1 && detail::is_fitting<detail::bilinear_mistake<A, B, W, Bias...>>)
auto bilinear(A&& x1, B&& x2, W&& w, Bias&&... bias) {
  constexpr int R = rank_of<A>;
  detail::check_defined("bilinear", x1);
  detail::check_defined("bilinear", x2);
  detail::check_defined("bilinear", w);
  (detail::check_defined("bilinear", bias), ...);
  const auto a = detail::eval_to_read(std::forward<A>(x1));
  const auto b = detail::eval_to_read(std::forward<B>(x2));
  const auto weight = detail::eval_to_read(std::forward<W>(w));
  const auto of_w = weight.shape();
  detail::check_bilinear({a.shape().data(), R}, {b.shape().data(), R}, {of_w.data(), 3});
  (detail::check_bilinear_bias({of_w.data(), 3}, {bias.shape().data(), rank_of<Bias>}), ...);
  auto of_products = a.shape();
  of_products[R - 1] = of_w[1] * of_w[2];
  return eval(linear(eval(a.unsqueeze(R) * b.unsqueeze(R - 1)).reshape(of_products.values),
                     weight.reshape({of_w[0], of_w[1] * of_w[2]}), std::forward<Bias>(bias)...));
}

template <class A, class B, class Problem = typename detail::product_mistake<2, 2, A, B>::problem,
          class Fix = typename detail::product_mistake<2, 2, A, B>::fix>
void mm(A&&, B&&) = delete;
template <class A, class B, class Problem = typename detail::product_mistake<3, 3, A, B>::problem,
          class Fix = typename detail::product_mistake<3, 3, A, B>::fix>
void bmm(A&&, B&&) = delete;
template <class A, class B, class Problem = typename detail::product_mistake<1, 1, A, B>::problem,
          class Fix = typename detail::product_mistake<1, 1, A, B>::fix>
void outer(A&&, B&&) = delete;
template <class A, class B, class Problem = typename detail::product_mistake<1, 1, A, B>::problem,
          class Fix = typename detail::product_mistake<1, 1, A, B>::fix>
void ger(A&&, B&&) = delete;
// Of a sum of rank R and a product of operands of ranks RA and RB.
// The factors one after the other, and what the function rejects.
#define SINTER_ADDED_FORMS(name, R, RA, RB)                                                                         \
  template <class X, class A, class B, class Beta>                                                                  \
    requires(detail::is_added<R, RA, RB, X, A, B> && std::is_arithmetic_v<Beta>)                                    \
  auto name(const X& x, A&& a, B&& b, Beta beta, double alpha = 1) {                                                \
    const product_options factors{.beta = static_cast<double>(beta), .alpha = alpha};                               \
    return name(x, std::forward<A>(a), std::forward<B>(b), factors);                                                \
  }                                                                                                                 \
  template <class X, class A, class B, class Problem = typename detail::added_mistake<R, RA, RB, X, A, B>::problem, \
            class Fix = typename detail::added_mistake<R, RA, RB, X, A, B>::fix>                                    \
  void name(X&&, A&&, B&&, double, double = 1) = delete;                                                            \
  template <class X, class A, class B, class Problem = typename detail::added_mistake<R, RA, RB, X, A, B>::problem, \
            class Fix = typename detail::added_mistake<R, RA, RB, X, A, B>::fix>                                    \
  void name(X&&, A&&, B&&, const product_options& = {}) = delete;
SINTER_ADDED_FORMS(addmm, 2, 2, 2)
SINTER_ADDED_FORMS(baddbmm, 3, 3, 3)
SINTER_ADDED_FORMS(addbmm, 2, 3, 3)
SINTER_ADDED_FORMS(addmv, 1, 2, 1)
SINTER_ADDED_FORMS(addr, 2, 1, 1)
#undef SINTER_ADDED_FORMS
template <class A, class B, class Problem = typename detail::cross_mistake<A, B>::problem,
          class Fix = typename detail::cross_mistake<A, B>::fix>
void cross(A&&, B&&, index_t = -1) = delete;
template <class A, class B, class Problem = typename detail::kron_mistake<A, B>::problem,
          class Fix = typename detail::kron_mistake<A, B>::fix>
void kron(A&&, B&&) = delete;
template <class A, class B, class W, class... Bias,
          class Problem = typename detail::bilinear_mistake<A, B, W, Bias...>::problem,
          class Fix = typename detail::bilinear_mistake<A, B, W, Bias...>::fix>
void bilinear(A&&, B&&, W&&, Bias&&...) = delete;

}  // namespace sinter
