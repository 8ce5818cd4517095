// sinter/ops/matmul.hpp: products of two matrices, of batches of them, and linear layers.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/second_order.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/matmul_precision.hpp"

namespace sinter {

template <class A, class B, bool BT>
struct matmul_expr;

namespace detail {

template <class A, class B, bool BT>
using matmul_of = matmul_expr<evaluated<A>, evaluated<B>, BT>;

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
  backend<device_of<C>>::template matmul<element_of<C>>(matrix_of(a), matrix_of(b), matrix_of(c), accumulate, epilogue);
}

template <class E>
state_ptr state_if_tracked(const E& e) {
  if constexpr (is_variable<E>) return access::state_of(e);
  else return {};
}

/// The gradient of s, which has memory, (+)= a b, in whatever order its axes lie.
template <class T, int R, device D, class A, class B>
void multiply_into_gradient(const typed_state<T, R, D>& s, const A& a, const B& b, bool add) {
  if (s.grad.strides()[R - 1] == 1 || s.shape[R - 1] == 1) return multiply_into(a, b, s.grad, add);
  if (s.grad.strides()[R - 2] == 1)
    return multiply_into(b.transpose(), a.transpose(), s.grad.transpose(), add);  // c^T = b^T a^T
  const auto product = tensor<T, R, D>::uninitialized(s.shape);
  multiply_into(a, b, product, false);
  write_or_add(product, s.grad, add);
}

/// Runs dest (+)= a b on the gradient of `to`.
template <class T, int R, device D, class A, class B>
void add_product(const state_ptr& to, const A& a, const B& b) {
  auto& s = static_cast<typed_state<T, R, D>&>(*to);
  bool add = false;
  s.gradient(add);
  multiply_into_gradient(s, a, b, add);
}

/// Backward of y = a b: da = g b^T, db = a^T g. With `transposed`, of y = a b^T: da = g b, db = g^T a.
template <class T, int R, device D>
struct matmul_backward : tape_entry {
  /// Work that a rule has left to this entry in the pass that runs: a second gradient, made together with db.
  struct work_with_db {
    state_ptr second;
    void (*run)(matmul_backward& entry, grad_state& y, const state_ptr& second) = nullptr;
  };

  const bool transposed;
  state_ptr state[2];    ///< of a and b
  tensor<T, R, D> a, b;  ///< each is kept where the other is tracked
  std::uint64_t a_version = 0, b_version = 0;
  work_with_db with_db;

  explicit matmul_backward(bool b_transposed) : transposed(b_transposed) {}

  entry_kind kind() final { return kind_of(*this); }
  const state_ptr* inputs(int& count) const final {
    count = 2;
    return state;
  }
  void release() override {
    a = b = {};
    with_db = {};
  }
  void backward(grad_state& y) override {
    if (state[0]) with_factors_of_da(y, [&](const auto& g, const auto& x) { add_product<T, R, D>(state[0], g, x); });
    if (state[1]) make_db(y);
  }
  void make_db(grad_state& y) {
    if (const work_with_db work = std::exchange(with_db, {}); work.run != nullptr)
      return work.run(*this, y, work.second);
    with_factors_of_db(y, [&](const auto& x, const auto& z) { add_product<T, R, D>(state[1], x, z); });
  }
  /// f(left, right) for the product that da is. Errors: autograd_error if b was written to since.
  template <class F>
  auto with_factors_of_da(const grad_state& y, const F& f) const {
    check_version(b, b_version);
    return transposed ? f(gradient_of(y), b) : f(gradient_of(y), b.transpose());
  }
  /// f(left, right) for the product that db is. Errors: autograd_error if a was written to since.
  template <class F>
  auto with_factors_of_db(const grad_state& y, const F& f) const {
    check_version(a, a_version);
    return transposed ? f(gradient_of(y).transpose(), a) : f(a.transpose(), gradient_of(y));
  }
  static void check_version(const tensor<T, R, D>& t, std::uint64_t version) {
    if (access::storage_of(t)->version.load(std::memory_order_relaxed) != version)
      refuse<autograd_error>(
          {"backward of 'matmul': its operand of shape ", t.shape(),
           " was modified in place after the statement; use a copy, or write to it after backward()"});
  }

 private:
  static const tensor<T, R, D>& gradient_of(const grad_state& y) {
    return static_cast<const typed_state<T, R, D>&>(y).grad;
  }
};

template <bool BT, class A, class B>
matmul_of<A, B, BT> make_matmul(const char* op, A&& a, B&& b);

/// The same, when the gradient itself is to be differentiated.
template <class A, class B, bool BT>
struct matmul_graph_backward final : matmul_backward<element_of<A>, A::rank, device_of<A>> {
  using T = element_of<A>;
  static constexpr int R = A::rank;
  using D = device_of<A>;
  lower_order_of<A> left;
  lower_order_of<B> right;

  matmul_graph_backward(const A& x, const B& y)
      : matmul_backward<T, R, D>(BT), left(lower_order(x)), right(lower_order(y)) {}
  void release() override {
    matmul_backward<T, R, D>::release();
    left = {};
    right = {};
  }
  void backward_graph(const state_ptr& y, graph_gradients& to) override {
    const variable<T, R, D> g = to.get<T, R, D>(y);
    if (this->state[1]) this->check_version(this->a, this->a_version);
    if (this->state[0]) this->check_version(this->b, this->b_version);
    if constexpr (A::order >= 2) {
      if constexpr (BT) to.add(this->state[0], eval(make_matmul<false>("matmul", g, right)));
      else to.add(this->state[0], eval(make_matmul<false>("matmul", g, right.transpose())));
    }
    if constexpr (B::order >= 2) {
      if constexpr (BT) to.add(this->state[1], eval(make_matmul<false>("matmul", g.transpose(), left)));
      else to.add(this->state[1], eval(make_matmul<false>("matmul", left.transpose(), g)));
    }
  }
};

}  // namespace detail

/// a b, or a b^T where BT. Operands are evaluated; see matmul() and linear().
template <class A, class B, bool BT>
struct [[nodiscard]] matmul_expr : detail::point_base<matmul_expr<A, B, BT>, element_of<A>, A::rank, device_of<A>,
                                                      detail::larger(A::order, B::order)> {
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = A::rank == 2;
  static constexpr bool keeps_input = true;
  static constexpr bool differentiable_twice = true;
  static constexpr const char* explained_as() { return BT ? "linear" : "matmul"; }
  /// Does sinter::compiled hold its kernels for several sets of instructions?
  static constexpr bool has_variants = floating_element<element_of<A>>;
  using base = detail::point_base<matmul_expr<A, B, BT>, element_of<A>, A::rank, device_of<A>,
                                  detail::larger(A::order, B::order)>;
  using T = element_of<A>;
  using D = device_of<A>;
  static constexpr int R = A::rank;

  matmul_expr(const char* op, A x, B y) : a(std::move(x)), b(std::move(y)) {
    const auto& s = a.shape();
    const auto& t = b.shape();
    const index_t inner = BT ? t[R - 1] : t[R - 2];
    bool fits = s[R - 1] == inner;
    if constexpr (R == 3) fits = fits && s[0] == t[0];
    if (!fits)
      detail::refuse<shape_error>(
          {op, ": shapes ", s, " and ", t,
           BT ? " do not fit: both must have the same last extent"
              : " do not fit: the last extent of the first must be the second to last of the second",
           (R == 3 ? ", and the batches be equal" : "")});
    this->shape_ = s;
    this->shape_[R - 1] = BT ? t[R - 2] : t[R - 1];
  }

  void compute_into(const tensor<T, R, D>& to, const typename detail::backend<D>::epilogue* epilogue) const {
    const auto& left = detail::plain(a);
    const auto& right = detail::plain(b);
    if constexpr (BT) detail::multiply_into(left, right.transpose(), to, false, epilogue);
    else detail::multiply_into(left, right, to, false, epilogue);
  }

  bool is_recorded() const {
    return detail::recording() && (detail::state_if_tracked(a) || detail::state_if_tracked(b));
  }

  auto record(const tensor<T, R, D>& value) const {
    const detail::state_ptr sa = detail::state_if_tracked(a);
    const detail::state_ptr sb = detail::state_if_tracked(b);
    if (!is_recorded()) return detail::unrecorded<base::order>(value);
    auto node = [&] {
      if constexpr (base::order >= 2) return std::make_unique<detail::matmul_graph_backward<A, B, BT>>(a, b);
      else return std::make_unique<detail::matmul_backward<T, R, D>>(BT);
    }();
    node->name = BT ? "linear" : "matmul";
    node->state[0] = sa;
    node->state[1] = sb;
    if (sb) node->a = detail::plain(a), node->a_version = detail::access::storage_of(node->a)->version;
    if (sa) node->b = detail::plain(b), node->b_version = detail::access::storage_of(node->b)->version;
    return detail::produced<base::order>(value, std::move(node));
  }

  A a;
  B b;
};

namespace detail {

/// One matrix as a batch of n.
template <class X>
void repeat_batch(X& x, index_t n) {
  if (n == 1) return;
  const index_t shape[] = {n, x.shape()[1], x.shape()[2]};
  x = x.broadcast_to(shape);
}

template <bool BT, class A, class B>
matmul_of<A, B, BT> make_matmul(const char* op, A&& a, B&& b) {
  check_defined(op, a);
  check_defined(op, b);
  if constexpr (rank_of<A> == 3) {
    evaluated<A> x = eval_to_read(std::forward<A>(a));
    evaluated<B> y = eval_to_read(std::forward<B>(b));
    if (x.shape()[0] == 1) repeat_batch(x, y.shape()[0]);
    else if (y.shape()[0] == 1) repeat_batch(y, x.shape()[0]);
    return {op, std::move(x), std::move(y)};
  } else {
    return {op, eval_to_read(std::forward<A>(a)), eval_to_read(std::forward<B>(b))};
  }
}

}  // namespace detail

template <int, int>
struct matmul_of_ranks;
template <int, int>
struct linear_of_ranks;
struct both_of_rank_1_or_more;
struct x_of_rank_1_or_more_and_w_of_rank_2;
struct product_of_a_value_that_let_names;
struct evaluate_it_before_let;

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
detail::matmul_of<A, B, false> matmul(A&& a, B&& b) {
  return detail::make_matmul<false>("matmul", std::forward<A>(a), std::forward<B>(b));
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
auto linear(X&& x, W&& w, B&& b) -> decltype(std::declval<detail::matmul_of<X, W, true>>() + std::forward<B>(b)) {
  auto product = detail::make_matmul<true>("linear", std::forward<X>(x), std::forward<W>(w));
  if constexpr (expression<detail::bare<B>>) detail::check_bias(product.shape(), b.shape());
  return std::move(product) + std::forward<B>(b);
}
template <expression X, expression W>
  requires(detail::linear_fits<X, W>)
detail::matmul_of<X, W, true> linear(X&& x, W&& w) {
  return detail::make_matmul<true>("linear", std::forward<X>(x), std::forward<W>(w));
}
template <class X, class W, class B, class Problem = typename detail::linear_mistake<X, W, B>::problem,
          class Fix = typename detail::linear_mistake<X, W, B>::fix>
void linear(X&&, W&&, B&&) = delete;
template <class X, class W, class Problem = typename detail::linear_mistake<X, W>::problem,
          class Fix = typename detail::linear_mistake<X, W>::fix>
void linear(X&&, W&&) = delete;

}  // namespace sinter
