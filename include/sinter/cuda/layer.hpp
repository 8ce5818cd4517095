// sinter/cuda/layer.hpp: the work after a product on the tape, where cuBLASLt has a part in its backward.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/grad/layer.hpp"
#include "sinter/grad/statement.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::cuda_impl {

using sinter::detail::grad_state;
using sinter::detail::saved_leaf;
using sinter::detail::state_ptr;
using sinter::detail::storage_ptr;

/// The gradient of a bias: the sum of the rows of the product's.
template <class T, device D>
void sum_rows(grad_state& product, const state_ptr& bias) {
  const auto& g = static_cast<sinter::detail::typed_state<T, 2, D>&>(product).grad;
  const tensor<T, 1, D> sums = sum(g, 0);
  sinter::detail::add_gradient(bias, sums);
}

/// The statement act(product + bias), or one that looks so: F is its formula, without the marks of what is tracked.
template <device D, class T, class K, class F, bool Sums>
struct layer_statement final : sinter::detail::statement_backward<D, T, K, 2, Sums>,
                               sinter::detail::activation_backward {
  using statement = sinter::detail::statement_backward<D, T, K, 2, Sums>;
  using activation = product_tail::activation;
  static constexpr activation act = tail_formula<F>::act;
  storage_ptr kept;

  using statement::statement;
  sinter::detail::activation_backward* as_layer() override { return this; }
  void release() override {
    statement::release();
    kept = {};
  }

  bool open(ends& e) const override {
    if (!kept || !find(e) || has_gradient(e.bias)) return false;
    e.kept = kept;
    e.gelu_tanh = act == activation::gelu_tanh;
    return true;
  }

  void backward(grad_state& y) override {
    if constexpr (act == activation::none) {
      for (const state_ptr& s : this->state)  // an earlier pass may have ended in an error
        if (s && s->producer != nullptr && s->producer->as_product() != nullptr) s->producer->as_product()->bias = {};
      ends e;
      if (find(e) && hand_over(y, e)) return;
    }
    if constexpr (act == activation::gelu_tanh)
      if (kept) return reverse_kept(y);
    statement::backward(y);
  }

 private:
  using tensor_state = sinter::detail::typed_state<T, 2, D>;

  static bool has_gradient(const state_ptr& s) { return s && s->has_grad; }

  /// Which leaf is the product, of which nothing but this statement has come, and which one the bias.
  bool find(ends& e) const {
    if (this->result.rank != 2 || this->space.rank > 0) return false;  // a sum's gradient may have one axis
    const extents<sinter::max_rank>& shape = this->result.shape;
    for (std::size_t s = 0; s < this->target.size(); ++s) {
      const saved_leaf& l = this->target[s];
      const state_ptr& at = this->state[s];
      if (!e.product && sinter::detail::is_between(at) && at->producer->as_product() != nullptr && l.rank == 2 &&
          l.shape[0] == shape[0] && l.shape[1] == shape[1])
        e.product = at;
      else if (at && !e.bias && l.rank == 1 && l.shape[0] == shape[1]) e.bias = at;
      else if (at) return false;
    }
    return bool(e.product);
  }

  /// Leaves the gradient of the bias to the product for the weights'.
  static bool leave_sums(const ends& e) {
    sinter::detail::product_backward& product = *e.product->producer->as_product();
    // its own producer, if any, must come after the product in the walk
    if (has_gradient(e.bias) || !product.state[1] || e.bias->order > e.product->order) return false;
    product.bias = e.bias;
    product.sum_rows = &sum_rows<T, D>;
    return true;
  }

  /// Without an activation the gradient of the product is that of the result.
  static bool hand_over(grad_state& y, const ends& e) {
    auto& to = static_cast<tensor_state&>(*e.product);
    if (!(to.dense == static_cast<tensor_state&>(y).dense) || (e.bias && !leave_sums(e))) return false;
    to.grad = static_cast<tensor_state&>(y).grad;
    to.has_grad = true;
    return true;
  }

  /// From the argument of the activation, which the kernel of forward has kept, instead of the leaves.
  void reverse_kept(grad_state& y) const {
    using P = sinter::detail::kernel::map<ops::gelu_tanh_op, sinter::detail::kernel::leaf<T, true>>;
    ends e;
    if (!find(e)) throw std::logic_error("sinter: a layer has lost its product");
    const auto& g = static_cast<tensor_state&>(y).grad;
    bool add = false;  // stays so
    auto& to = static_cast<tensor_state&>(*e.product);
    to.gradient(add);
    product_tail tail;
    tail.act = act;
    const extents<2>& shape = g.shape();
    const index_t strides[] = {tail.kept_leading(shape[1]), 1};
    leaf_ref in[2] = {{kept->data, shape.data(), strides, 2, sizeof(T)}, sinter::detail::leaf_of(g)};
    const sink_ref out = sinter::detail::sink_of(to.grad);
    sinter::detail::backend<D>::template reverse<T>(P{}, sinter::detail::shape_upto<2>(shape), in, &out);
    if (!e.bias) return;
    e.product->producer->as_product()->bias = {};  // an earlier pass may have ended in an error
    if (!leave_sums(e)) sum_rows<T, D>(to, e.bias);
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <class Ready>
  requires(Ready::order < 2 && Ready::rank == 2 && is_cuda_v<device_of<Ready>> &&
           cuda_impl::tail_formula<lowered<false, Ready>>::fits)
struct node_type<Ready> {
  using type = cuda_impl::layer_statement<device_of<Ready>, element_of<Ready>, lowered<true, Ready>,
                                          lowered<false, Ready>, (lowest_tracked_rank<Ready> < Ready::rank)>;
};

}  // namespace sinter::detail
