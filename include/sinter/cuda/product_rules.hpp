// sinter/cuda/product_rules.hpp: rules by which a BLAS does more than a product in backward.
//
// y = act(a b + bias) is two entries of the tape: the product a b, and its tail, which is the work after it. In
// backward a BLAS can do three things in the kernel of a product that it computes anyway:
// - (product, tail without activation): the gradient of the product is that of y. The gradient of the bias is the sum
// of
//   its rows. The kernel of db reads those rows, and sums them too.
// - (product, tail with gelu_tanh): the kernel of forward kept the argument of gelu_tanh. The gradient of the product
//   is made from it. The gradient of the bias is made as above.
// - (tail with relu or gelu_tanh, product): y is the left factor of another product. The kernel that makes the gradient
//   of y multiplies it by the slope of the activation, and sums the rows for the bias. It writes the gradient of a b.
#pragma once

#include "sinter/cuda/matmul.hpp"
#include "sinter/grad/backward_rule.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::cuda_impl {

using sinter::detail::entry_pair;
using sinter::detail::grad_state;
using sinter::detail::state_ptr;
using sinter::detail::storage_ptr;
using activation = product_tail::activation;

template <class T, device D>
using product_entry = sinter::detail::kernel_backward_of<ops::matmul_op<2>, tensor<T, 2, D>, tensor<T, 2, D>>;
template <class T, device D>
using matrix_state = sinter::detail::typed_state<T, 2, D>;

/// What rules see of the tape entry of a product's tail.
template <class T, device D, activation Act>
struct tail_entry {
  sinter::detail::elementwise_backward& statement;
  /// Stored by the kernel of forward, in the layout of the BLAS: for relu the signs of the result, a bit each; for
  /// gelu_tanh its argument. Null where the tail did not run in that kernel.
  storage_ptr kept;

  struct inputs {
    state_ptr product;
    state_ptr bias;  ///< null where there is none, or it is not tracked
  };
  /// Finds them among the tracked leaves. False if those are not one matrix with the shape of the result, which has no
  /// other consumer, and at most one row.
  bool find(inputs& found) const {
    const auto& shape = statement.result.shape;
    // A tail that was summed at once has a gradient of fewer axes.
    if (statement.result.rank != 2 || statement.space.rank > 0) return false;
    for (std::size_t i = 0; i < statement.target.size(); ++i) {
      const sinter::detail::saved_leaf& l = statement.target[i];
      const state_ptr& s = statement.state[i];
      if (!found.product && has_one_consumer(s) && l.rank == 2 && l.shape[0] == shape[0] && l.shape[1] == shape[1])
        found.product = s;
      else if (s && !found.bias && l.rank == 1 && l.shape[0] == shape[1]) found.bias = s;
      else if (s) return false;
    }
    return bool(found.product);
  }
};

inline bool has_gradient(const state_ptr& s) { return s && s->has_grad; }

/// The gradient of a bias in a kernel of its own: the sum of the rows of the product's.
template <class T, device D>
void sum_rows(const tensor<T, 2, D>& of_product, const state_ptr& bias) {
  const tensor<T, 1, D> sums = sum(of_product, 0);
  sinter::detail::add_gradient(bias, sums);
}

/// db, and the gradient of a bias: the sum of the rows of g, that of the product. In one kernel where the BLAS has one.
template <class T, device D>
void make_db_and_sums(sinter::detail::tape_entry& product, const tensor<T, 2, D>& g, const state_ptr& bias) {
  using sinter::detail::matrix_of;
  const auto& entry = static_cast<const product_entry<T, D>&>(product);
  entry.op.with_factors_of_db(g, entry.template operand<0>(), [&](const auto& left, const auto& right) {
    auto& to = static_cast<matrix_state<T, D>&>(*entry.template source<1>());
    bool add = false, add_sums = false;  // the second stays false, as the bias has no gradient
    to.gradient(add);
    if (!has_gradient(bias)) {  // none from a statement between the tail and the product
      product_tail tail;
      tail.sums = bias->gradient(add_sums);
      tail.of = entry.op.transposed ? product_tail::summed::left : product_tail::summed::right;
      if (to.grad.is_contiguous() && to.grad.numel() > 0 &&
          multiply_by_blas<T, D>(matrix_of(left), matrix_of(right), matrix_of(to.grad), add, tail))
        return;
      bias->drop_gradient();
    }
    sum_rows(g, bias);
    sinter::detail::multiply_into_gradient(to.grad, left, right, add);
  });
}

/// Leaves the gradient of the bias to the kernel of db. False where that would come at the wrong time: the BLAS writes
/// over a gradient that is there, and the entry that made the bias must run after the product's.
template <class T, device D>
bool leave_sums(product_entry<T, D>& product, const grad_state& value, const state_ptr& bias) {
  if (has_gradient(bias) || !product.template wants<1>() || bias->order > value.order) return false;
  sinter::detail::running_pass::note_late_use(*bias, value.order);
  product.saved = {bias, &make_db_and_sums<T, D>};
  return true;
}

/// Backward of product + bias, or of a copy of the product, without a kernel.
template <class T, device D>
bool share_gradient(const entry_pair<product_entry<T, D>, tail_entry<T, D, activation::none>>& p) {
  p.producer.saved = {};  // an earlier pass may have ended in an error
  typename tail_entry<T, D, activation::none>::inputs found;
  if (!p.consumer.find(found) || found.product.get() != &p.value) return false;
  auto& to = static_cast<matrix_state<T, D>&>(p.value);
  const auto& y = static_cast<const matrix_state<T, D>&>(p.result);
  if (!(to.dense == y.dense) || (found.bias && !leave_sums<T, D>(p.producer, p.value, found.bias))) return false;
  to.share_gradient(y);
  return true;
}

/// Backward of gelu_tanh(product + bias) from its argument, which is kept instead of the leaves.
template <class T, device D>
bool reverse_gelu_tanh(const entry_pair<product_entry<T, D>, tail_entry<T, D, activation::gelu_tanh>>& p) {
  using formula = sinter::detail::kernel::map<ops::gelu_tanh_op, sinter::detail::kernel::leaf<T, true>>;
  p.producer.saved = {};  // an earlier pass may have ended in an error
  typename tail_entry<T, D, activation::gelu_tanh>::inputs found;
  if (!p.consumer.kept || !p.consumer.find(found) || found.product.get() != &p.value) return false;
  const auto& g = static_cast<const matrix_state<T, D>&>(p.result).grad;
  auto& to = static_cast<matrix_state<T, D>&>(p.value);
  bool add = false;  // stays false, as the value has no gradient
  to.gradient(add);
  const extents<2>& shape = g.shape();
  product_tail tail;
  tail.act = activation::gelu_tanh;
  const index_t strides[] = {tail.kept_leading(shape[1]), 1};
  leaf_ref in[2] = {{p.consumer.kept->data, shape.data(), strides, 2, sizeof(T)}, sinter::detail::leaf_of(g)};
  const sink_ref out = sinter::detail::sink_of(to.grad);
  sinter::detail::backend<D>::template reverse<T>(formula{}, sinter::detail::shape_upto<2>(shape), in, &out);
  if (found.bias && !leave_sums<T, D>(p.producer, p.value, found.bias)) sum_rows(to.grad, found.bias);
  return true;
}

/// Backward of a product whose left factor is the result of a tail with an activation, and of that tail.
template <class T, device D, activation Act>
bool multiply_by_slope(const entry_pair<tail_entry<T, D, Act>, product_entry<T, D>>& p) {
  using sinter::detail::matrix_of;
  typename tail_entry<T, D, Act>::inputs found;
  if (p.input != 0 || !p.producer.kept || !p.producer.find(found) || has_gradient(found.bias)) return false;
  auto& to = static_cast<matrix_state<T, D>&>(*found.product);
  struct guard {
    const typename tail_entry<T, D, Act>::inputs& found;
    const grad_state& value;
    ~guard() {
      if (value.producer_done) return;
      found.product->drop_gradient();
      if (found.bias) found.bias->drop_gradient();
    }
  } undo{found, p.value};
  bool add = false;  // stays false, as neither has a gradient
  to.gradient(add);
  if (!to.grad.is_contiguous() || to.grad.numel() == 0) return false;
  product_tail tail;
  tail.act = Act;
  tail.slope = true;
  tail.kept = p.producer.kept->data;
  if (found.bias) {
    tail.of = product_tail::summed::product;
    tail.sums = found.bias->gradient(add);
  }
  const auto& op = p.consumer.op;
  const auto& g = p.consumer.gradient_in(p.result);
  const auto& b = p.consumer.template operand<1>();
  p.value.producer_done = op.with_factors_of_da(g, b, [&](const auto& left, const auto& right) {
    return multiply_by_blas<T, D>(matrix_of(left), matrix_of(right), matrix_of(to.grad), false, tail);
  });
  if (!p.value.producer_done) return false;
  if (p.consumer.template wants<1>()) sinter::detail::kernels<ops::matmul_op<2>, D>::make_db(op, p.consumer, g);
  return true;
}

template <class T, device D>
inline const sinter::detail::backward_rule<product_entry<T, D>, tail_entry<T, D, activation::none>> sums_with_db{
    &share_gradient<T, D>};
template <class T, device D>
inline const sinter::detail::backward_rule<product_entry<T, D>, tail_entry<T, D, activation::gelu_tanh>>
    gelu_tanh_from_argument{&reverse_gelu_tanh<T, D>};
template <class T, device D, activation Act>
inline const sinter::detail::backward_rule<tail_entry<T, D, Act>, product_entry<T, D>> slope_with_da{
    &multiply_by_slope<T, D, Act>};

/// The tape entry of act(product + bias), or of a statement of that form: F is its formula, without the marks of what
/// is tracked.
template <device D, class T, class F>
struct tail_backward final : sinter::detail::elementwise_backward, tail_entry<T, D, tail_formula<F>::act> {
  using statement_type = sinter::detail::elementwise_backward;
  using entry = tail_entry<T, D, tail_formula<F>::act>;
  static constexpr activation act = tail_formula<F>::act;

  tail_backward(const sinter::detail::formula_derivative& of, const void* plan)
      : statement_type(of, plan), entry{*this, {}} {
    if constexpr (act == activation::none) sums_with_db<T, D>.require();
    else slope_with_da<T, D, act>.require();
    if constexpr (act == activation::gelu_tanh) gelu_tanh_from_argument<T, D>.require();
  }

  sinter::detail::entry_kind kind() override { return sinter::detail::kind_of<entry>(*this); }
  void release() override {
    statement_type::release();
    this->kept = {};
  }
  void backward(grad_state& y) override {
    if (act == activation::gelu_tanh && this->kept) throw std::logic_error("sinter: a tail has lost its product");
    statement_type::backward(y);
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <class Ready>
  requires(Ready::order < 2 && Ready::rank == 2 && is_cuda_v<device_of<Ready>> &&
           cuda_impl::tail_formula<lowered<false, Ready>>::fits)
struct node_type<Ready> {
  using type = cuda_impl::tail_backward<device_of<Ready>, element_of<Ready>, lowered<false, Ready>>;
};

}  // namespace sinter::detail
