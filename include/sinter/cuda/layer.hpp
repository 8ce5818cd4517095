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
struct layer_statement final : sinter::detail::statement_node<D, T, K, Sums>, sinter::detail::layer_node {
  using statement = sinter::detail::statement_node<D, T, K, Sums>;
  storage_ptr mask;

  using statement::statement;
  sinter::detail::layer_node* as_layer() override { return this; }
  void release() override {
    statement::release();
    mask = {};
  }

  bool open(ends& e) const override {
    if (!mask) return false;
    e.mask = mask;
    return find(e);
  }

  void backward(grad_state& y) override {
    if constexpr (tail_formula<F>::act == product_tail::activation::none) {
      for (const state_ptr& s : this->state)  // an earlier pass may have ended in an error
        if (s && s->producer != nullptr && s->producer->as_product() != nullptr) s->producer->as_product()->bias = {};
      ends e;
      if (find(e) && hand_over(y, e)) return;
    }
    statement::backward(y);
  }

 private:
  using tensor_state = sinter::detail::typed_state<T, 2, D>;

  /// Which leaf is the product, of which nothing but this statement has come, and which one the bias.
  bool find(ends& e) const {
    if (this->result.rank != 2) return false;
    const extents<sinter::max_rank>& shape = this->result.shape;
    for (std::size_t s = 0; s < this->target.size(); ++s) {
      const saved_leaf& l = this->target[s];
      const state_ptr& at = this->state[s];
      if (!e.product && sinter::detail::is_between(at) && at->producer->as_product() != nullptr && l.rank == 2 && l.shape[0] == shape[0] && l.shape[1] == shape[1])
        e.product = at;
      else if (at && !e.bias && l.rank == 1 && l.shape[0] == shape[1] && !at->has_grad)
        e.bias = at;
      else if (at)
        return false;
    }
    return bool(e.product);
  }

  /// Without an activation the gradient of the product is that of the result.
  bool hand_over(grad_state& y, const ends& e) const {
    sinter::detail::product_node& product = *e.product->producer->as_product();
    if (e.bias) {
      // its own producer, if any, must come after the product in the walk
      if (!product.state[1] || e.bias->order > e.product->order) return false;
      product.bias = e.bias;
      product.sum_rows = &sum_rows<T, D>;
    }
    auto& to = static_cast<tensor_state&>(*e.product);
    to.grad = static_cast<tensor_state&>(y).grad;
    to.has_grad = true;
    return true;
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <class Ready>
  requires(Ready::order < 2 && Ready::rank == 2 && is_cuda_v<device_of<Ready>> && cuda_impl::tail_formula<lowered<false, Ready>>::fits)
struct node_type<Ready> {
  using type = cuda_impl::layer_statement<device_of<Ready>, element_of<Ready>, lowered<true, Ready>, lowered<false, Ready>,
                                          (lowest_tracked_rank<Ready> < Ready::rank)>;
};

}  // namespace sinter::detail
