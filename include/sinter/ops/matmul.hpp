// sinter/ops/matmul.hpp: matrix products, plain, batched, and as a linear layer.
#pragma once

#include "sinter/expr/evaluate.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/add.hpp"

namespace sinter {

namespace detail {

template <class T, auto S, device D>
matrix_ref matrix_of(const tensor<T, S, D>& t, index_t batch = 0) {
  constexpr int R = tensor<T, S, D>::rank;
  char* data = reinterpret_cast<char*>(access::data(t));
  if constexpr (R == 3) data += (t.shape()[0] == 1 ? 0 : batch) * t.strides()[0] * static_cast<index_t>(sizeof(T));
  return {data, t.shape()[R - 2], t.shape()[R - 1], t.strides()[R - 2], t.strides()[R - 1]};
}

/// c = a b (or c += a b), for rank 2 or matrix by matrix for rank 3.
template <class A, class B, class C>
void multiply_into(const A& a, const B& b, const C& c, bool accumulate, const typename backend<device_of<C>>::epilogue* epilogue = nullptr) {
  using T = element_of<C>;
  const index_t batches = C::rank == 3 ? c.shape()[0] : 1;
  for (index_t i = 0; i < batches; ++i)
    backend<device_of<C>>::template matmul<T>(matrix_of(a, i), matrix_of(b, i), matrix_of(c, i), accumulate, epilogue);
}

/// A leaf operand as plain tensor.
template <class E>
const auto& plain(const E& e) {
  if constexpr (is_variable<E>) return access::value_of(e);
  else return e;
}

template <class E>
using evaluated = bare<decltype(eval(std::declval<const E&>()))>;

template <class E>
state_ptr state_if_tracked(const E& e) {
  if constexpr (is_variable<E>) return access::state_of(e);
  else return {};
}

/// Runs dest (+)= a b on the gradient of `to`.
template <class T, int R, device D, class A, class B>
void add_product(const state_ptr& to, const A& a, const B& b) {
  auto& s = static_cast<typed_state<T, R, D>&>(*to);
  bool add = false;
  s.gradient(add);
  multiply_into(a, b, s.grad, add);
}

/// Backward of y = a b: da = g b^T, db = a^T g. With BT, of y = a b^T: da = g b, db = g^T a.
template <class T, int R, device D, bool BT>
struct matmul_node_tape final : tape_node {
  tensor<T, R, D> a, b;
  std::uint64_t a_version = 0, b_version = 0;
  state_ptr state[2];

  const state_ptr* inputs(int& count) const override {
    count = 2;
    return state;
  }
  void release() override { a = b = {}; }
  void backward(grad_state& y) override {
    const auto& g = static_cast<typed_state<T, R, D>&>(y).grad;
    if (state[0]) {
      check(b, b_version);
      if constexpr (BT) add_product<T, R, D>(state[0], g, b);
      else add_product<T, R, D>(state[0], g, b.transpose());
    }
    if (state[1]) {
      check(a, a_version);
      if constexpr (BT) add_product<T, R, D>(state[1], g.transpose(), a);
      else add_product<T, R, D>(state[1], a.transpose(), g);
    }
  }
  static void check(const tensor<T, R, D>& t, std::uint64_t version) {
    if (access::storage_of(t)->version.load(std::memory_order_relaxed) != version)
      throw autograd_error("backward of 'matmul': its operand of shape " + shape_text(t.shape()) +
                           " was modified in place after the statement; use a copy, or write to it after backward()");
  }
};

}  // namespace detail

/// a b, or a b^T where BT. Operands are evaluated; see matmul() and linear().
template <class A, class B, bool BT>
struct matmul_node : detail::point_base<matmul_node<A, B, BT>, element_of<A>, A::rank, device_of<A>, detail::larger(A::order, B::order)> {
  static constexpr int points = 1;
  static constexpr bool takes_epilogue = A::rank == 2;
  static constexpr const char* explained_as() { return BT ? "linear" : "matmul"; }
  using base = detail::point_base<matmul_node<A, B, BT>, element_of<A>, A::rank, device_of<A>, detail::larger(A::order, B::order)>;
  using T = element_of<A>;
  using D = device_of<A>;
  static constexpr int R = A::rank;

  matmul_node(const char* op, A x, B y) : a(std::move(x)), b(std::move(y)) {
    const auto& s = a.shape();
    const auto& t = b.shape();
    const index_t inner = BT ? t[R - 1] : t[R - 2];
    bool fits = s[R - 1] == inner;
    if constexpr (R == 3) fits = fits && s[0] == t[0];
    if (!fits)
      throw shape_error(std::string(op) + ": shapes " + detail::shape_text(s) + " and " + detail::shape_text(t) +
                        (BT ? " do not fit: both must have the same last extent" : " do not fit: the last extent of the first must be the second to last of the second") +
                        (R == 3 ? ", and the batches be equal" : ""));
    this->shape_ = s;
    this->shape_[R - 1] = BT ? t[R - 2] : t[R - 1];
  }

  void compute_into(const tensor<T, R, D>& to, const typename detail::backend<D>::epilogue* epilogue) const {
    const auto& left = detail::plain(a);
    const auto& right = detail::plain(b);
    if constexpr (BT) detail::multiply_into(left, right.transpose(), to, false, epilogue);
    else detail::multiply_into(left, right, to, false, epilogue);
  }

  auto record(const tensor<T, R, D>& value) const {
    const detail::state_ptr sa = detail::state_if_tracked(a);
    const detail::state_ptr sb = detail::state_if_tracked(b);
    if (!detail::recording() || (!sa && !sb)) return detail::unrecorded(value);
    auto node = std::make_unique<detail::matmul_node_tape<T, R, D, BT>>();
    node->name = BT ? "linear" : "matmul";
    node->state[0] = sa;
    node->state[1] = sb;
    if (sb) node->a = detail::plain(a), node->a_version = detail::access::storage_of(node->a)->version;
    if (sa) node->b = detail::plain(b), node->b_version = detail::access::storage_of(node->b)->version;
    return detail::produced(value, node.release());
  }

  A a;
  B b;
};

namespace detail {

template <bool BT, class A, class B>
auto make_matmul(const char* op, A&& a, B&& b) {
  check_defined(op, a);
  check_defined(op, b);
  auto x = eval(std::forward<A>(a));
  auto y = eval(std::forward<B>(b));
  return matmul_node<decltype(x), decltype(y), BT>(op, std::move(x), std::move(y));
}

template <class A, class B>
concept multipliable_matrices = expression<A> && expression<B> && same_device<A, B> && std::is_same_v<element_of<A>, element_of<B>> &&
                                rank_of<A> == rank_of<B> && (rank_of<A> == 2 || rank_of<A> == 3) && !std::is_same_v<element_of<A>, bool>;

}  // namespace detail

template <int, int>
struct matmul_of_ranks;
struct both_of_rank_2_or_both_of_rank_3;

/// The matrix product (M,K) x (K,N) => (M,N), or matrix by matrix (B,M,K) x (B,K,N) => (B,M,N). Transposed views are
/// read in place. Elementwise work on the result (bias, activation, residual) runs inside its kernel.
/// Derivative: da = g b^T, db = a^T g. Errors: shape_error when the extents do not fit.
///
///     tensor y = relu(matmul(x, w) + bias);
template <class A, class B>
  requires detail::multipliable_matrices<A, B>
auto matmul(A&& a, B&& b) {
  return detail::make_matmul<false>("matmul", std::forward<A>(a), std::forward<B>(b));
}
SINTER_BINARY_REJECTIONS(matmul)
template <expression A, expression B, class Problem = matmul_of_ranks<rank_of<A>, rank_of<B>>, class Fix = both_of_rank_2_or_both_of_rank_3>
  requires(same_device<A, B> && std::is_same_v<element_of<A>, element_of<B>> && !(rank_of<A> == rank_of<B> && (rank_of<A> == 2 || rank_of<A> == 3)))
void matmul(const A&, const B&) = delete;

/// x w^T + b: (N,in) x (out,in) + (out,) => (N,out), the layer of torch.nn.functional.linear.
///
///     auto h = relu(linear(x, w, b));
template <class X, class W, class B>
  requires(detail::multipliable_matrices<X, W> && rank_of<X> == 2 && detail::compatible<X, B>)
auto linear(X&& x, W&& w, B&& b) {
  return detail::make_matmul<true>("linear", std::forward<X>(x), std::forward<W>(w)) + std::forward<B>(b);
}
template <class X, class W>
  requires(detail::multipliable_matrices<X, W> && rank_of<X> == 2)
auto linear(X&& x, W&& w) {
  return detail::make_matmul<true>("linear", std::forward<X>(x), std::forward<W>(w));
}
template <expression X, expression W, class B, class Problem = operands_on_different_devices<device_of<X>, device_of<W>, device_of<B>>,
          class Fix = copy_one_operand_with_dot_to>
  requires(!same_device<X, W> || !same_device<X, B>)
void linear(const X&, const W&, const B&) = delete;
template <expression X, expression W, class Problem = operands_on_different_devices<device_of<X>, device_of<W>>, class Fix = copy_one_operand_with_dot_to>
  requires(!same_device<X, W>)
void linear(const X&, const W&) = delete;

}  // namespace sinter
