// sinter/grad/layer.hpp: what a matrix product and the elementwise work after it do for each other in backward, where
// the kernel of a product can take work along.
//
// y = act(a b + bias) is two entries of the tape: the product, and the work after it. Without an activation the
// gradient of the product is that of y, and the bias' is the sum of its rows, which the kernel of the weights' gradient
// reads anyway. And where y goes into nothing but another product, the kernel that makes its gradient can go on to that
// of a b.
#pragma once

#include "sinter/grad/tape.hpp"

namespace sinter::detail {

/// A product of two matrices.
struct product_backward : tape_entry {
  state_ptr state[2];  ///< of the factors
  /// Set in a pass that leaves to this entry the gradient of a bias, the sum of the rows of the product's.
  state_ptr bias;
  void (*sum_rows)(grad_state& product, const state_ptr& bias) = nullptr;  ///< makes it in a kernel of its own

  product_backward* as_product() final { return this; }
  const state_ptr* inputs(int& count) const final {
    count = 2;
    return state;
  }
};

/// Whether a state has one consumer, and nothing else asks for its gradient.
inline bool is_between(const state_ptr& s) {
  return s && s->references.load(std::memory_order_relaxed) == 1 && s->producer != nullptr && !s->producer->released &&
         !s->has_grad && !s->retain;
}

/// act(a b + bias), where the kernel of forward has kept what the slope of act takes.
struct activation_backward {
  struct ends {
    storage_ptr
        kept;  ///< relu: the signs of the result, a bit each; gelu_tanh: its argument. Both as a BLAS lays them out
    bool gelu_tanh = false;
    state_ptr product;  ///< to get the gradient of a b
    state_ptr bias;     ///< to get the sum of its rows; null where there is none, or nobody asks
  };
  /// False where something stands against that.
  virtual bool open(ends& e) const = 0;

 protected:
  ~activation_backward() = default;
};

/// The ends of the layer whose result `s` is, if all its gradient comes from one product.
inline bool open_layer(const state_ptr& s, activation_backward::ends& e) {
  if (!is_between(s)) return false;
  const activation_backward* const layer = s->producer->as_layer();
  return layer != nullptr && layer->open(e);
}

}  // namespace sinter::detail
