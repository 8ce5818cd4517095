// sinter/ops/matmul.hpp: products of two matrices, of batches of them, and linear layers.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/matmul_precision.hpp"

namespace sinter {

template <int, int>
struct matmul_of_ranks;
template <int, int>
struct linear_of_ranks;
struct both_of_rank_1_or_more;
struct x_of_rank_1_or_more_and_w_of_rank_2;
struct product_of_a_value_that_let_names;

namespace detail {

/// Products are of every element type but bool.
struct product_op {
  template <class T>
  static constexpr bool accepts = !std::is_same_v<T, bool>;
};

template <class A, class B>
constexpr auto find_matmul_mistake() {
  if constexpr (!expression<A> || !expression<B>) return no_operands<A, B>{};
  else if constexpr (!fits<product_op, A, B>) return mistake_of<product_op, A, B>{};
  else if constexpr (rank_of<A> < 1 || rank_of<B> < 1)
    return mistake<matmul_of_ranks<rank_of<A>, rank_of<B>>, both_of_rank_1_or_more>{};
  else if constexpr (reads_name<A> || reads_name<B>)
    return mistake<product_of_a_value_that_let_names, evaluate_it_before_let>{};
  else return fitting<element_of<A>>{};
}
template <class A, class B>
using matmul_mistake = decltype(find_matmul_mistake<bare<A>, bare<B>>());

/// A second gradient that a backward_rule has left to the entry of a product, to be made together with db in the pass
/// that runs.
template <class T, int R, device D>
struct work_with_db {
  state_ptr second;
  void (*run)(tape_entry& product, const tensor<T, R, D>& g, const state_ptr& second) = nullptr;
};

}  // namespace detail

namespace ops {

/// a b of matrices, or of batches of them: of operands of rank R. Derivative: da = g b^T, db = a^T g. With `transposed`
/// y = a b^T: da = g b, db = g^T a.
template <int R>
struct matmul_op : kernel_op {
  static constexpr const char* name = "matmul";
  static constexpr unsigned grad_uses[2] = {uses::second, uses::first};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int) { return take::strided; }
  static constexpr bool takes_epilogue = R == 2, keeps_input = true;
  static constexpr bool differentiable_twice = true;
  template <class A, class>
  static constexpr bool has_variants_of = floating_element<element_of<A>>;
  template <class T, device D>
  using saves = sinter::detail::work_with_db<T, R, D>;

  bool transposed = false;

  extents<R> shape(const extents<R>& a, const extents<R>& b) const {
    const index_t inner = transposed ? b[R - 1] : b[R - 2];
    bool fits = a[R - 1] == inner;
    if constexpr (R == 3) fits = fits && a[0] == b[0];
    if (!fits)
      sinter::detail::refuse<shape_error>(
          {transposed ? "linear" : name, ": shapes ", a, " and ", b,
           transposed ? " do not fit: both must have the same last extent"
                      : " do not fit: the last extent of the first must be the second to last of the second",
           (R == 3 ? ", and the batches be equal" : "")});
    extents<R> y = a;
    y[R - 1] = transposed ? b[R - 2] : b[R - 1];
    return y;
  }
  template <class A, class B>
  static constexpr auto mistake() {
    return sinter::detail::find_matmul_mistake<A, B>();
  }

  /// f(left, right) for the product that da is.
  template <class G, class B, class F>
  auto with_factors_of_da(const G& g, const B& b, const F& f) const {
    return transposed ? f(g, b) : f(g, b.transpose());
  }
  /// f(left, right) for the product that db is.
  template <class G, class A, class F>
  auto with_factors_of_db(const G& g, const A& a, const F& f) const {
    return transposed ? f(g.transpose(), a) : f(a.transpose(), g);
  }
  template <int I, class G, class A, class B, class Y>
  auto grad(const G& g, const A& a, const B& b, const Y&) const {
    const auto product = [](const auto& x, const auto& y) { return eval(matmul(x, y)); };
    if constexpr (I == 0) return with_factors_of_da(g, b, product);
    else return with_factors_of_db(g, a, product);
  }
};

/// a b^T by its name in messages.
struct linear_op : matmul_op<2> {
  static constexpr const char* name = "linear";
  using runs_as = matmul_op<2>;
  linear_op() { transposed = true; }
};

}  // namespace ops

namespace detail {

template <class T, auto S, device D>
matrix_ref matrix_of(const tensor<T, S, D>& t) {
  constexpr int R = tensor<T, S, D>::rank;
  matrix_ref m{access::data(t), t.shape()[R - 2], t.shape()[R - 1], t.strides()[R - 2], t.strides()[R - 1]};
  if constexpr (R == 3) {
    m.batches = t.shape()[0];
    m.batch_stride = m.batches > 1 ? t.strides()[0] : 0;
  }
  return m;
}

/// c = a b (or c += a b), for rank 2 or matrix by matrix for rank 3. Each row of c lies densely.
template <class A, class B, class C>
void multiply_into(const A& a, const B& b, const C& c, bool accumulate,
                   const typename backend<device_of<C>>::epilogue* epilogue = nullptr) {
  kernels<ops::matmul_op<C::rank>, device_of<C>>::template multiply<element_of<C>>(matrix_of(a), matrix_of(b),
                                                                                   matrix_of(c), accumulate, epilogue);
}

/// The gradient `to` (+)= a b, in whatever order its axes lie.
template <class T, int R, device D, class A, class B>
void multiply_into_gradient(const tensor<T, R, D>& to, const A& a, const B& b, bool add) {
  if (to.strides()[R - 1] == 1 || to.shape()[R - 1] == 1) return multiply_into(a, b, to, add);
  if (to.strides()[R - 2] == 1)
    return multiply_into(b.transpose(), a.transpose(), to.transpose(), add);  // c^T = b^T a^T
  const auto product = tensor<T, R, D>::uninitialized(to.shape());
  multiply_into(a, b, product, false);
  write_or_add(product, to, add);
}

/// The kernels of a product but for `multiply<T>(a, b, c, accumulate, epilogue)`, c (+)= a b, which a backend adds.
template <int R, device D>
struct product_kernels {
  using op_type = ops::matmul_op<R>;

  template <class T>
  static work_with_db<T, R, D> forward(const op_type& op, const tensor<T, R, D>& y,
                                       const typename backend<D>::epilogue* after, const tensor<T, R, D>& a,
                                       const tensor<T, R, D>& b) {
    multiply_into(a, op.transposed ? b.transpose() : b, y, false, after);
    return {};
  }
  template <class Backward>
  static void reverse(const op_type& op, Backward& b) {
    if (b.template wants<0>())
      op.with_factors_of_da(b.gradient(), b.template operand<1>(), [&b](const auto& x, const auto& y) {
        const auto place = b.template place_of<0>();
        multiply_into_gradient(place.to, x, y, place.add);
      });
    if (b.template wants<1>()) make_db(op, b, b.gradient());
  }
  /// db of the entry b, whose result has the gradient g, and what a rule has left to it.
  template <class Backward, class G>
  static void make_db(const op_type& op, Backward& b, const G& g) {
    if (const auto work = std::exchange(b.saved, {}); work.run != nullptr) return work.run(b, g, work.second);
    op.with_factors_of_db(g, b.template operand<0>(), [&b](const auto& x, const auto& y) {
      const auto place = b.template place_of<1>();
      multiply_into_gradient(place.to, x, y, place.add);
    });
  }
};

}  // namespace detail

namespace detail {

/// One matrix as a batch of n.
template <class X>
void repeat_batch(X& x, index_t n) {
  if (n == 1) return;
  const index_t shape[] = {n, x.shape()[1], x.shape()[2]};
  x = x.broadcast_to(shape);
}

template <class Op, class A, class B>
kernel_of<Op, A, B> make_matmul(const Op& op, A&& a, B&& b) {
  if constexpr (rank_of<A> == 3) {
    check_defined(Op::name, a);
    check_defined(Op::name, b);
    evaluated<A> x = eval_to_read(std::forward<A>(a));
    evaluated<B> y = eval_to_read(std::forward<B>(b));
    if (x.shape()[0] == 1) repeat_batch(x, y.shape()[0]);
    else if (y.shape()[0] == 1) repeat_batch(y, x.shape()[0]);
    return kernel_of<Op, A, B>(op, std::move(x), std::move(y));
  } else {
    return make_kernel(op, std::forward<A>(a), std::forward<B>(b));
  }
}

/// Two matrices, or as many of them on either side: one kernel. Others are made into such (ops/matmul_axes.hpp).
template <class A, class B>
inline constexpr bool multipliable_matrices = [] {
  if constexpr (!is_fitting<matmul_mistake<A, B>>) return false;
  else return rank_of<A> == rank_of<B> && (rank_of<A> == 2 || rank_of<A> == 3);
}();

/// Of linear(x, w) and linear(x, w, bias).
template <class X, class W, class... B>
constexpr auto find_linear_mistake() {
  if constexpr (!expression<X> || !expression<W>) return no_operands<X, W>{};
  else if constexpr (!fits<product_op, X, W, B...>) return mistake_of<product_op, X, W, B...>{};
  else if constexpr (rank_of<X> < 1 || rank_of<W> != 2)
    return mistake<linear_of_ranks<rank_of<X>, rank_of<W>>, x_of_rank_1_or_more_and_w_of_rank_2>{};
  else if constexpr (reads_name<X> || reads_name<W>)
    return mistake<product_of_a_value_that_let_names, evaluate_it_before_let>{};
  else return fitting<element_of<X>>{};
}
template <class X, class... Rest>
using linear_mistake = decltype(find_linear_mistake<bare<X>, bare<Rest>...>());
/// Of a matrix x; others are made into one (ops/matmul_axes.hpp).
template <class X, class... Rest>
inline constexpr bool linear_fits = [] {
  if constexpr (!is_fitting<linear_mistake<X, Rest...>>) return false;
  else return rank_of<X> == 2;
}();

}  // namespace detail

/// The matrix product (M,K) x (K,N) => (M,N), or matrix by matrix (B,M,K) x (B,K,N) => (B,M,N), where a batch of 1
/// repeats. Transposed views are
/// read in place. Elementwise work on the result (bias, activation, residual) runs inside its kernel. matmul_precision
/// tells in what arithmetic. For vectors there are mv() and dot().
/// Derivative: da = g b^T, db = a^T g. Errors: shape_error when the extents do not fit.
///
///     tensor y = relu(matmul(x, w) + bias);
template <expression A, expression B>
  requires(detail::multipliable_matrices<A, B>)
detail::kernel_of<ops::matmul_op<rank_of<A>>, A, B> matmul(A&& a, B&& b) {
  return detail::make_matmul(ops::matmul_op<rank_of<A>>(), std::forward<A>(a), std::forward<B>(b));
}
template <class A, class B, class Problem = typename detail::matmul_mistake<A, B>::problem,
          class Fix = typename detail::matmul_mistake<A, B>::fix>
void matmul(A&&, B&&) = delete;

namespace detail {

template <int R>
void check_bias(const extents<2>& product, const extents<R>& bias) {
  if (R != 1 || bias[0] != product[1])
    refuse<shape_error>(
        {"linear: a bias of shape ", bias, " for ", product[1], " outputs; it must be (", product[1], ",)"});
}

}  // namespace detail

/// x w^T + b: (N,in) x (out,in) + (out,) => (N,out), the layer of torch.nn.functional.linear.
///
///     auto h = relu(linear(x, w, b));
template <expression X, expression W, class B>
  requires(detail::linear_fits<X, W, B>)
auto linear(X&& x, W&& w, B&& b)
    -> decltype(std::declval<detail::kernel_of<ops::linear_op, X, W>>() + std::forward<B>(b)) {
  auto product = detail::make_matmul(ops::linear_op(), std::forward<X>(x), std::forward<W>(w));
  if constexpr (expression<detail::bare<B>>) detail::check_bias(product.shape(), b.shape());
  return std::move(product) + std::forward<B>(b);
}
template <expression X, expression W>
  requires(detail::linear_fits<X, W>)
detail::kernel_of<ops::linear_op, X, W> linear(X&& x, W&& w) {
  return detail::make_matmul(ops::linear_op(), std::forward<X>(x), std::forward<W>(w));
}
template <class X, class W, class B, class Problem = typename detail::linear_mistake<X, W, B>::problem,
          class Fix = typename detail::linear_mistake<X, W, B>::fix>
void linear(X&&, W&&, B&&) = delete;
template <class X, class W, class Problem = typename detail::linear_mistake<X, W>::problem,
          class Fix = typename detail::linear_mistake<X, W>::fix>
void linear(X&&, W&&) = delete;

}  // namespace sinter
