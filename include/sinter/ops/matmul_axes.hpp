// sinter/ops/matmul_axes.hpp: matmul and linear of vectors and of more than two axes, made into products of matrices.
#pragma once

#include "sinter/ops/matmul.hpp"

namespace sinter {

namespace detail {

/// The rank of matmul(a, b): a vector counts as a row on the left, as a column on the right, and loses that axis again.
constexpr int product_rank(int a, int b) { return larger(a == 1 ? 2 : a, b == 1 ? 2 : b) - int{a == 1} - int{b == 1}; }
template <class A, class B>
using product_of_axes = typename result_of_point<element_of<A>, product_rank(rank_of<A>, rank_of<B>), device_of<A>,
                                                 larger(bare<A>::order, bare<B>::order)>::type;
template <class A>
inline constexpr int order_of_operand = [] {
  if constexpr (expression<A>) return bare<A>::order;
  else return 0;  // a literal
}();
template <class X, class... W>
using linear_of_axes = typename result_of_point<element_of<X>, rank_of<X>, device_of<X>,
                                                larger(bare<X>::order, order_of_operand<bare<W>>...)>::type;

/// The axes before those of the matrices.
template <int R>
extents<R - 2> leading(const extents<R>& shape) {
  extents<R - 2> axes;
  for (int d = 0; d + 2 < R; ++d) axes[d] = shape[d];
  return axes;
}
template <int R>
extents<R + 2> with_matrix(const extents<R>& axes, index_t rows, index_t columns) {
  extents<R + 2> shape;
  for (int d = 0; d < R; ++d) shape[d] = axes[d];
  shape[R] = rows;
  shape[R + 1] = columns;
  return shape;
}

/// x with its leading axes repeated to `axes`, as a batch of matrices.
template <class X, int R>
auto as_batch(const X& x, const extents<R>& axes) {
  const auto shape = with_matrix(axes, x.shape()[X::rank - 2], x.shape()[X::rank - 1]);
  const index_t batch[] = {axes.numel(), shape[R], shape[R + 1]};
  bool repeats = X::rank != R + 2;
  if constexpr (X::rank == R + 2) repeats = !(x.shape() == shape);
  if (!repeats) return x.reshape(batch);
  return x.broadcast_to(shape.values).reshape(batch);
}

/// The product of matrices with leading axes that broadcast.
template <class A, class B>
auto multiply_axes(const A& a, const B& b) {
  constexpr int ra = A::rank, rb = B::rank;
  const index_t rows = a.shape()[ra - 2], inner = a.shape()[ra - 1], columns = b.shape()[rb - 1];
  if (inner != b.shape()[rb - 2])
    refuse<shape_error>({"matmul: shapes ", a.shape(), " and ", b.shape(),
                         " do not fit: the last extent of the first must be the second to last of the second"});
  if constexpr (ra == 2 && rb == 2) {
    return eval(matmul(a, b));
  } else if constexpr (rb == 2) {  // one matrix for all rows
    const auto axes = leading(a.shape());
    const auto y = eval(matmul(a.reshape({axes.numel() * rows, inner}), b));
    return y.reshape(with_matrix(axes, rows, columns).values);
  } else {
    const auto axes = broadcast_shapes("matmul", leading(a.shape()), leading(b.shape()));
    const auto y = eval(matmul(as_batch(a, axes), as_batch(b, axes)));
    return y.reshape(with_matrix(axes, rows, columns).values);
  }
}

/// A vector on the left as a row, on the right as a column; other operands as they are.
template <bool Left, class X>
auto as_matrix(X x) {
  if constexpr (X::rank != 1) return x;
  else return x.unsqueeze(Left ? 0 : 1);
}

}  // namespace detail

/// The product of operands of other ranks, from 1, as torch.matmul. A vector on the left is a row, one on the right a
/// column, and the result lacks that axis: (K) x (K) => (), (M,K) x (K) => (M), (K) x (…,K,N) => (…,N). Axes before
/// the last two are batches and broadcast: (…,M,K) x (…,K,N) => (…,M,N). Runs at once. Derivative: that of the
/// products, summed over what was repeated. Errors: shape_error when the extents do not fit.
///
///     tensor scores = matmul(queries, keys.transpose());  // (N,heads,L,d) x (N,heads,d,L)
template <expression A, expression B>
  requires(detail::is_fitting<detail::matmul_mistake<A, B>> && !detail::multipliable_matrices<A, B>)
detail::product_of_axes<A, B> matmul(A&& a, B&& b) {
  detail::check_defined("matmul", a);
  detail::check_defined("matmul", b);
  const auto y = detail::multiply_axes(detail::as_matrix<true>(detail::eval_to_read(std::forward<A>(a))),
                                       detail::as_matrix<false>(detail::eval_to_read(std::forward<B>(b))));
  constexpr int R = detail::bare<decltype(y)>::rank;
  if constexpr (rank_of<A> == 1 && rank_of<B> == 1) return y.select(0, 0).select(0, 0);
  else if constexpr (rank_of<A> == 1) return y.select(R - 2, 0);
  else if constexpr (rank_of<B> == 1) return y.select(R - 1, 0);
  else return y;
}

/// linear() of one vector or of more leading axes: (…,in) => (…,out). Runs at once.
///
///     auto h = relu(linear(tokens, w, b));  // (N,L,in) => (N,L,out)
template <expression X, expression W, class... B>
  requires(detail::is_fitting<detail::linear_mistake<X, W, B...>> && rank_of<X> != 2 && sizeof...(B) <= 1)
detail::linear_of_axes<X, W, B...> linear(X&& x, W&& w, B&&... b) {
  detail::check_defined("linear", x);
  detail::check_defined("linear", w);
  constexpr int R = rank_of<X>;
  auto shape = x.shape();
  const index_t inputs = shape[R - 1], outputs = w.shape()[0];
  if (inputs != w.shape()[1])
    detail::refuse<shape_error>(
        {"linear: shapes ", shape, " and ", w.shape(), " do not fit: both must have the same last extent"});
  shape[R - 1] = 1;
  const index_t rows = shape.numel();
  shape[R - 1] = outputs;
  const auto y = eval(linear(detail::eval_to_read(std::forward<X>(x)).reshape({rows, inputs}), std::forward<W>(w),
                             std::forward<B>(b)...));
  return y.reshape(shape.values);
}

}  // namespace sinter
