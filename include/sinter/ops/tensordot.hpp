// sinter/ops/tensordot.hpp: tensordot, sums over several axes of two tensors, and multi_dot, chains of matrices.
#pragma once

#include <tuple>
#include <vector>

#include "sinter/ops/products.hpp"

namespace sinter {

struct name_at_most_the_axes_that_both_have_and_leave_8;
struct matrices_of_rank_2_with_vectors_at_the_ends_only;

namespace detail {

template <int N>
struct have_axes_to_sum {
  static constexpr bool holds(const int* r) {
    return N >= 0 && r[0] >= N && r[1] >= N && r[0] + r[1] - 2 * N <= max_rank;
  }
};
template <int N, class A, class B>
using tensordot_mistake =
    decltype(find_ranks_mistake<have_axes_to_sum<N>, name_at_most_the_axes_that_both_have_and_leave_8, bare<A>,
                                bare<B>>());

template <int Count>
struct are_a_chain {
  static constexpr bool holds(const int* r) {
    if (Count < 2) return false;
    for (int i = 0; i < Count; ++i)
      if (r[i] != 2 && !(r[i] == 1 && (i == 0 || i + 1 == Count))) return false;
    return true;
  }
};
template <class... A>
using chain_mistake = decltype(find_ranks_mistake<are_a_chain<static_cast<int>(sizeof...(A))>,
                                                  matrices_of_rank_2_with_vectors_at_the_ends_only, bare<A>...>());

/// How an operand of tensordot becomes a matrix.
struct matrix_axes {
  index_t order[max_rank] = {};  ///< of its axes: those that are listed stand last, or first
  index_t kept[max_rank] = {};   ///< extents of the others
  index_t rows = 1, summed = 1;  ///< elements along the others and along those that are listed
};
SINTER_SHARED matrix_axes find_matrix_axes(shape_piece x, const index_t* listed, int count, bool listed_first);
SINTER_SHARED void check_summed_axes(shape_piece a, shape_piece b, const index_t* of_a, const index_t* of_b, int count);
/// How a chain of n matrices is multiplied with the fewest multiplications. Matrix i has extents e[i] and e[i + 1].
/// Element i n + j is the last matrix of the left factor of the product of those from i to j. T. Cormen et al.,
/// "Introduction to Algorithms", section 15.2.
SINTER_SHARED std::vector<int> order_of_chain(const std::vector<index_t>& e);

#if SINTER_DEFINES

SINTER_SHARED matrix_axes find_matrix_axes(shape_piece x, const index_t* listed, int count, bool listed_first) {
  matrix_axes m;
  bool is_listed[max_rank] = {};
  int at = listed_first ? 0 : x.rank - count, other = listed_first ? count : 0, n = 0;
  for (int i = 0; i < count; ++i) {
    const int axis = checked_axis("tensordot", listed[i], x.rank);
    if (is_listed[axis]) refuse<value_error>({"tensordot: axis ", axis, " of shape ", x, " is named twice"});
    is_listed[axis] = true;
    m.order[at++] = axis;
    m.summed *= x.extents[axis];
  }
  for (int d = 0; d < x.rank; ++d) {
    if (is_listed[d]) continue;
    m.order[other++] = d;
    m.kept[n++] = x.extents[d];
    m.rows *= x.extents[d];
  }
  return m;
}

SINTER_SHARED void check_summed_axes(shape_piece a, shape_piece b, const index_t* of_a, const index_t* of_b,
                                     int count) {
  for (int i = 0; i < count; ++i) {
    const int p = checked_axis("tensordot", of_a[i], a.rank), q = checked_axis("tensordot", of_b[i], b.rank);
    if (a.extents[p] != b.extents[q])
      refuse<shape_error>({"tensordot: axis ", p, " of shape ", a, " and axis ", q, " of shape ", b,
                           " are summed together, but their extents differ"});
  }
}

SINTER_SHARED std::vector<int> order_of_chain(const std::vector<index_t>& e) {
  const std::size_t n = e.size() - 1;
  std::vector<int> split(n * n);
  std::vector<double> cost(n * n);
  for (std::size_t length = 1; length < n; ++length)
    for (std::size_t i = 0; i + length < n; ++i) {
      const std::size_t j = i + length;
      for (std::size_t k = i; k < j; ++k) {
        const double last = static_cast<double>(e[i]) * static_cast<double>(e[k + 1]) * static_cast<double>(e[j + 1]);
        const double all = cost[i * n + k] + cost[(k + 1) * n + j] + last;
        if (k > i && all >= cost[i * n + j]) continue;
        cost[i * n + j] = all;
        split[i * n + j] = static_cast<int>(k);
      }
    }
  return split;
}

#endif  // SINTER_DEFINES

template <class X>
auto permuted(const X& x, const index_t* order) {
  if constexpr (X::rank < 2) {
    return x;
  } else {
    index_t axes[std::size_t{X::rank}];
    for (int d = 0; d < X::rank; ++d) axes[d] = order[d];
    return x.permute(axes);
  }
}

template <int N, class A, class B>
auto sum_along(const A& a, const B& b, const index_t* of_a, const index_t* of_b) {
  constexpr int left = A::rank - N, R = left + B::rank - N;
  const shape_piece shape_a{a.shape().data(), A::rank}, shape_b{b.shape().data(), B::rank};
  check_summed_axes(shape_a, shape_b, of_a, of_b, N);
  const matrix_axes m = find_matrix_axes(shape_a, of_a, N, false), n = find_matrix_axes(shape_b, of_b, N, true);
  const auto y =
      eval(matmul(permuted(a, m.order).reshape({m.rows, m.summed}), permuted(b, n.order).reshape({n.summed, n.rows})));
  if constexpr (R == 0) {
    return y.select(0, 0).select(0, 0);
  } else {
    extents<R> shape;
    for (int d = 0; d < R; ++d) shape[d] = d < left ? m.kept[d] : n.kept[d - left];
    return y.reshape(shape.values);
  }
}

/// The product of operands I to J of a chain, a tuple of matrices.
template <int I, int J, class Chain>
auto multiply_chain(const Chain& chain, const std::vector<int>& split);
/// The same, whose left factor ends at K or behind it.
template <int I, int J, int K, class Chain>
auto multiply_split(const Chain& chain, const std::vector<int>& split) {
  constexpr std::size_t n = std::tuple_size_v<Chain>;
  const auto product = [&] {
    return eval(matmul(multiply_chain<I, K>(chain, split), multiply_chain<K + 1, J>(chain, split)));
  };
  if constexpr (K + 1 == J) return product();
  else return split[I * n + J] == K ? product() : multiply_split<I, J, K + 1>(chain, split);
}
template <int I, int J, class Chain>
auto multiply_chain(const Chain& chain, const std::vector<int>& split) {
  if constexpr (I == J) return std::get<I>(chain);
  else return multiply_split<I, J, I>(chain, split);
}

template <int... I, class... A>
auto multiply_all(std::integer_sequence<int, I...>, A&&... a) {
  constexpr int n = sizeof...(A);
  constexpr int ranks[] = {rank_of<A>...};
  const auto chain = std::make_tuple(as_matrix < I == 0 > (eval_to_read(std::forward<A>(a)))...);
  std::vector<index_t> e{std::get<0>(chain).shape()[0]};
  (e.push_back(std::get<I>(chain).shape()[1]), ...);
  const bool fits[] = {std::get<I>(chain).shape()[0] == e[I]...};
  const extents<2> shapes[] = {std::get<I>(chain).shape()...};
  for (int i = 1; i < n; ++i)
    if (!fits[i])
      refuse<shape_error>({"multi_dot: operands ", i - 1, " and ", i, ", as matrices of shapes ", shapes[i - 1],
                           " and ", shapes[i],
                           ", do not fit: the columns of the first must be as many as the rows of the second"});
  const auto y = multiply_chain<0, n - 1>(chain, order_of_chain(e));
  if constexpr (ranks[0] == 1 && ranks[n - 1] == 1) return y.select(0, 0).select(0, 0);
  else if constexpr (ranks[0] == 1) return y.select(0, 0);
  else if constexpr (ranks[n - 1] == 1) return y.select(1, 0);
  else return y;
}

}  // namespace detail

/// The sum over pairs of axes, those listed for a and those listed for b, of the products of a and b: the other axes of
/// a stand before those of b. One matrix product, of copies where axes are moved. Runs at once. Errors: shape_error
/// where the extents of a pair differ, index_error for axes that are not there, value_error for one that is named
/// twice.
///
///     tensor y = tensordot(signals, spread, {1, 2}, {0, 1});  // (N,C,L) x (C,L,M) => (N,M)
template <std::size_t N, class A, class B>
  requires(detail::is_fitting<detail::tensordot_mistake<int{N}, A, B>>)
auto tensordot(A&& a, B&& b, const index_t (&axes_of_a)[N], const index_t (&axes_of_b)[N]) {
  detail::check_defined("tensordot", a);
  detail::check_defined("tensordot", b);
  const auto of_a = detail::to_extents(axes_of_a), of_b = detail::to_extents(axes_of_b);
  return detail::sum_along<int{N}>(detail::eval_to_read(std::forward<A>(a)), detail::eval_to_read(std::forward<B>(b)),
                                   of_a.data(), of_b.data());
}
/// The sum over the last N axes of a and the first N of b; PyTorch's `dims`, of which the shape of the result depends.
///
///     tensor y = tensordot<1>(a, b);  // (M,K) x (K,N) => (M,N)
template <int N = 2, class A, class B>
  requires(detail::is_fitting<detail::tensordot_mistake<N, A, B>>)
auto tensordot(A&& a, B&& b) {
  detail::check_defined("tensordot", a);
  detail::check_defined("tensordot", b);
  extents<max_rank> of_a, of_b;
  for (int i = 0; i < N; ++i) {
    of_a[i] = rank_of<A> - N + i;
    of_b[i] = i;
  }
  return detail::sum_along<N>(detail::eval_to_read(std::forward<A>(a)), detail::eval_to_read(std::forward<B>(b)),
                              of_a.data(), of_b.data());
}

/// The product of two or more matrices, in the order that takes the fewest multiplications, as torch.linalg.multi_dot.
/// The first may be a vector, which is a row, and the last one, which is a column; the result lacks that axis. Runs at
/// once. Errors: shape_error where extents do not fit.
///
///     tensor y = multi_dot(a, b, w);  // (2,1000) x (1000,3) x (3,500)
template <class... A>
  requires(detail::is_fitting<detail::chain_mistake<A...>>)
auto multi_dot(A&&... a) {
  (detail::check_defined("multi_dot", a), ...);
  return detail::multiply_all(std::make_integer_sequence<int, static_cast<int>(sizeof...(A))>(), std::forward<A>(a)...);
}

template <std::size_t N, class A, class B, class Problem = typename detail::tensordot_mistake<int{N}, A, B>::problem,
          class Fix = typename detail::tensordot_mistake<int{N}, A, B>::fix>
void tensordot(A&&, B&&, const index_t (&)[N], const index_t (&)[N]) = delete;
template <int N = 2, class A, class B, class Problem = typename detail::tensordot_mistake<N, A, B>::problem,
          class Fix = typename detail::tensordot_mistake<N, A, B>::fix>
void tensordot(A&&, B&&) = delete;
template <class... A, class Problem = typename detail::chain_mistake<A...>::problem,
          class Fix = typename detail::chain_mistake<A...>::fix>
void multi_dot(A&&...) = delete;

/// The rank of the result follows from the number of axes, so it is an argument of the type.
struct number_of_axes_that_is_an_argument;
struct write_tensordot_less_number_greater;
template <class A, class B, std::integral N, class Problem = number_of_axes_that_is_an_argument,
          class Fix = write_tensordot_less_number_greater>
void tensordot(A&&, B&&, N) = delete;

}  // namespace sinter
