// sinter/ops/detail/picked.hpp: backward of ops whose results are elements of x, picked along an axis by an index.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/indices.hpp"

namespace sinter {

/// Elements of x along an axis, and where they stand in it.
///
///     auto [values, indices] = sort(x, 1);
template <class Values>
struct values_and_indices {
  Values values;
  tensor<std::int64_t, Values::rank, typename Values::device_type> indices;
};

namespace detail {

/// Indices of E's elements.
template <class E>
using indices_of = typename result_of_point<std::int64_t, bare<E>::rank, device_of<E>, 0>::type;

/// Picks along an axis beyond which sums are gathered in double: an element that is read 2^24 times would take up
/// nothing more in float. Sums in double take about three times as long.
inline constexpr index_t many_picks = index_t{1} << 20;

template <class Wide, class T, int R, device D>
void add_picked_in(const tensor<T, R, D>& to, int axis, const tensor<std::int64_t, R, D>& index,
                   const tensor<T, R, D>& g, index_order order) {
  const auto sums = zeros<Wide, D>(to.shape());
  using adding = kernels<ops::scatter_add, D>;
  if constexpr (is_cpu_v<D>) adding::run({axis, order}, sums, index, g);
  else adding::run({axis, order}, sums, index, eval(cast<Wide>(g)));
  to.in_place() += cast<T>(sums);
}
/// to[picked elements] += g
template <class T, int R, device D>
void add_picked(const tensor<T, R, D>& to, int axis, const tensor<std::int64_t, R, D>& index, const tensor<T, R, D>& g,
                index_order order) {
  if constexpr (narrow_element<T>) {
    if (index.shape()[axis] > many_picks) add_picked_in<double>(to, axis, index, g, order);
    else add_picked_in<float>(to, axis, index, g, order);
  } else if (std::is_same_v<T, float> && index.shape()[axis] > many_picks) {
    add_picked_in<double>(to, axis, index, g, order);
  } else {
    kernels<ops::scatter_add, D>::run({axis, order}, to, index, g);
  }
}

template <class T, int R, device D>
struct picked_backward final : one_input_backward {
  tensor<std::int64_t, R, D> index;
  std::uint64_t version = 0;  ///< of the index
  int axis = 0;
  index_order order = index_order::any;

  void release() override { index = {}; }
  void backward(grad_state& y) override {
    if (access::storage_of(index)->version.load(std::memory_order_relaxed) != version)
      refuse<autograd_error>({"backward of '", name, "': its indices of shape ", index.shape(),
                              " were modified in place after the statement; use a copy"});
    auto& to = static_cast<typed_state<T, R, D>&>(*source);
    add_picked(to.sum(), axis, index, static_cast<typed_state<T, R, D>&>(y).grad, order);
  }
};

/// y as the elements of the prologue x at `index` along the axis: a variable where x is tracked.
template <class X, class T, int R, device D>
evaluated<X> picked(const char* op, const tensor<T, R, D>& y, const X& x, int axis,
                    const tensor<std::int64_t, R, D>& index, index_order order) {
  if constexpr (is_tracked_v<X>) {
    static_assert(X::order < 2, "sinter: this op has no second derivative; use it on variables of order 1");
    const state_ptr source = recording() ? prologue_state(x) : state_ptr();
    if (!source) return unrecorded<1>(y);
    auto node = std::make_unique<picked_backward<T, R, D>>();
    node->name = op;
    node->index = index;
    node->version = access::storage_of(index)->version.load(std::memory_order_relaxed);
    node->source = source;
    node->axis = axis;
    node->order = order;
    return produced<1>(y, std::move(node));
  } else {
    return y;
  }
}

}  // namespace detail
}  // namespace sinter
