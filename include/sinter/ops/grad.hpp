// sinter/ops/grad.hpp: grad(y, x), a gradient that can be differentiated again.
#pragma once

#include "sinter/grad/second_order.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter {

namespace detail {

template <class T, int R, device D, int N>
variable<T, N, D> sum_to(const variable<T, R, D>& g, const extents<N>& shape) {
  axis_set axes;
  bool any = false;
  for (int d = 0; d < R; ++d) {
    const index_t n = d < R - N ? 1 : shape[d - (R - N)];
    axes.has[d] = d < R - N || n != g.shape()[d];
    any = any || axes.has[d];
  }
  index_t to[std::size_t{N > 0 ? N : 1}] = {};
  for (int d = 0; d < N; ++d) to[d] = shape[d];
  if constexpr (R == N) {
    if (!any) return g;
    return eval(make_reduction<ops::sum_op, R>(g, axes));
  } else {
    const variable<T, R, D> kept = any ? eval(make_reduction<ops::sum_op, R>(g, axes)) : g;
    if constexpr (N == 0) return sum(kept);
    else return kept.reshape(to);
  }
}

}  // namespace detail

struct variables_of_order_1;
struct declare_them_with_order_2;
struct keep_variables_of_order_2_on_one_device;

/// dy/dx as a variable of order 1, whose own backward() gives second derivatives. y is a scalar computed from x; both
/// are variables of order 2 on one device: copies to another have no second derivative. Nothing is added to any grad(),
/// and the graph of y stays. Every elementwise op, sum, mean, var, norm, matmul and linear can be on the way; others do
/// not compile at order 2. Errors: shape_error when y is not a scalar, autograd_error when y does not depend on x.
///
///     variable<float, 1, cpu, 2> x = tensor<float, 1>{1, 2};
///     variable y = sum(x * x * x);
///     variable slope = grad(y, x);         // 3 x^2
///     variable(sum(slope)).backward();     // x.grad() is 6 x
template <class T, auto SY, auto SX, device D>
variable<T, SX, D, 1> grad(const variable<T, SY, D, 2>& y, const variable<T, SX, D, 2>& x) {
  detail::check_defined("grad", y);
  if (y.numel() != 1) detail::refuse<shape_error>({"grad: y of shape ", y.shape(), " is not a scalar; sum it first"});
  const detail::state_ptr& root = detail::access::state_of(y);
  const detail::state_ptr& target = detail::access::state_of(x);
  detail::graph_gradients gradients;
  if (root && target) {
    gradients.add(root, variable<T, SY, D>(ones<T, D>(y.shape())));
    detail::walk_graph(root, target, gradients);
  }
  if (!target || !gradients.has(target))
    throw autograd_error("grad: y does not depend on x, or was computed under no_grad");
  return gradients.get<T, SX, D>(target);
}
/// The same for an expression y that has yet to be computed.
template <expression Y, auto SX>
  requires(!detail::is_variable<Y> && Y::order == 2)
auto grad(const Y& y, const variable<element_of<Y>, SX, device_of<Y>, 2>& x) {
  return grad(detail::eval_to_read(y), x);
}
template <expression Y, expression X, class Problem = operands_on_different_devices<device_of<Y>, device_of<X>>,
          class Fix = keep_variables_of_order_2_on_one_device>
  requires(Y::order == 2 && X::order == 2 && !same_device<Y, X>)
void grad(const Y&, const X&) = delete;
template <class T, auto SY, auto SX, device D, device DX, int OY, int OX, class Problem = variables_of_order_1,
          class Fix = declare_them_with_order_2, class = std::enable_if_t<(OY < 2 || OX < 2)>>
void grad(const variable<T, SY, D, OY>& y, const variable<T, SX, DX, OX>& x) = delete;

template <expression Y, class T, auto SX, device D, int OX, class Problem = variables_of_order_1,
          class Fix = declare_them_with_order_2,
          class = std::enable_if_t<!detail::is_variable<Y> && (Y::order == 1 || OX < 2)>>
void grad(const Y& y, const variable<T, SX, D, OX>& x) = delete;

}  // namespace sinter
