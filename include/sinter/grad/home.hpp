// sinter/grad/home.hpp: memory that somebody else chooses for the gradient of a leaf, such as a slice of a bucket that
// is sent as one.
#pragma once

#include "sinter/grad/variable.hpp"

namespace sinter::detail {

/// Makes `slice` the home of a leaf's gradient: as many elements as the leaf has, side by side. The gradient lies there
/// in the order of the leaf's value in memory, from now until take_home(). One that is there already is copied: the
/// slice must not overlap its memory, unless it is the same.
///
/// zero_grad() leaves the memory as it is, to be overwritten by the next pass that has a gradient for the leaf. So a
/// tensor that grad() has returned shows the gradient of the next pass, too, and while there is no gradient the home
/// holds what it held before: whoever sends it away zeroes it first. A pass over a leaf without a gradient may write to
/// the home at once, also if it fails later.
///
/// Errors: autograd_error for what is no leaf, and in a pass that has found some of the leaf's gradient; shape_error
/// for another number of elements; value_error for a slice with gaps.
template <class T, auto S, device D, int Order>
void give_home(const variable<T, S, D, Order>& leaf, const tensor<T, 1, D>& slice) {
  constexpr int R = variable<T, S, D, Order>::rank;
  const state_ptr& state = access::state_of(leaf);
  if (!state || state->producer != nullptr || state->has_grad)
    refuse<autograd_error>(
        {"give_home: a variable of shape ", leaf.shape(),
         state && state->has_grad ? " is in a pass" : " is no leaf; only gradients of leaves have a home"});
  if (!slice.defined() || slice.numel() != leaf.numel())
    refuse<shape_error>({"give_home: a slice of ", slice.defined() ? slice.numel() : 0,
                         " elements for the gradient of a leaf of shape ", leaf.shape()});
  if (!slice.is_contiguous()) refuse<value_error>({"give_home: the elements of the slice must lie side by side"});
  auto& s = static_cast<typed_state<T, R, D>&>(*state);
  s.make_dense();
  const auto home = access::make<T, R, D>(access::storage_of(slice), access::data(slice), s.shape, s.dense);
  if (s.has_kept) write(s.kept, home);
  s.kept = home;
  s.at_home = true;
}

/// Ends give_home(): the leaf's gradient, if there is one, is copied to memory of its own.
template <class T, auto S, device D, int Order>
void take_home(const variable<T, S, D, Order>& leaf) {
  constexpr int R = variable<T, S, D, Order>::rank;
  auto& s = static_cast<typed_state<T, R, D>&>(*access::state_of(leaf));
  if (!s.at_home) return;
  tensor<T, R, D> own;
  if (s.has_kept) {
    own = tensor<T, R, D>::uninitialized(s.shape, s.dense);
    write(s.kept, own);
  }
  s.kept = own;
  s.at_home = false;
}

}  // namespace sinter::detail
