// sinter/ops/glu.hpp: linear units with a gate.
#pragma once

#include "sinter/ops/gelu.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/sigmoid.hpp"
#include "sinter/ops/silu.hpp"

namespace sinter {
namespace detail {

/// The two halves of a value along an axis.
template <class V>
struct halves {
  V first, second;
};
template <class X>
auto halves_of(const char* name, const X& x, index_t along) {
  const auto value = eval(x);
  const int axis = checked_axis(name, along, rank_of<X>);
  const index_t n = value.shape()[axis];
  if (n % 2 != 0)
    refuse<shape_error>({name, ": axis ", axis, " of shape ", value.shape(), " has ", n, " elements, an odd number"});
  using V = std::remove_const_t<decltype(value)>;
  return halves<V>{value.slice(axis, 0, n / 2), value.slice(axis, n / 2, n)};
}
template <class X>
concept has_halves = expression<X> && floating_element<element_of<X>> && (rank_of<X> >= 1);

}  // namespace detail

/// a sigmoid(b), with a the first and b the second half of x along an axis, as torch.nn.functional.glu. Floating
/// point; a network makes both halves by one product. x is evaluated, what comes behind is a formula of the halves.
/// Errors: index_error for an axis that is not there, shape_error for an odd number of elements along it.
/// Y. N. Dauphin et al., ICML (2017).
///
///     tensor y = glu(linear(x, w, b));  // (N,2 n) => (N,n)
template <class X>
  requires detail::has_halves<X>
auto glu(const X& x, detail::whole axis = -1) {
  const auto h = detail::halves_of("glu", x, axis);
  return h.first * sigmoid(h.second);
}
template <class X, class Problem = typename detail::mistake_of<ops::sigmoid_op, X>::problem,
          class Fix = typename detail::mistake_of<ops::sigmoid_op, X>::fix>
void glu(const X&, detail::whole = -1) = delete;

/// silu(a) b, likewise: the gate is the first half, as in Llama. N. Shazeer, "GLU variants improve transformer", 2020.
///
///     tensor y = swiglu(linear(x, w));
template <class X>
  requires detail::has_halves<X>
auto swiglu(const X& x, detail::whole axis = -1) {
  const auto h = detail::halves_of("swiglu", x, axis);
  return silu(h.first) * h.second;
}
template <class X, class Problem = typename detail::mistake_of<ops::silu_op, X>::problem,
          class Fix = typename detail::mistake_of<ops::silu_op, X>::fix>
void swiglu(const X&, detail::whole = -1) = delete;

/// gelu(a) b, likewise.
///
///     tensor y = geglu(linear(x, w));
template <class X>
  requires detail::has_halves<X>
auto geglu(const X& x, detail::whole axis = -1) {
  const auto h = detail::halves_of("geglu", x, axis);
  return gelu(h.first) * h.second;
}
template <class X, class Problem = typename detail::mistake_of<ops::gelu_op, X>::problem,
          class Fix = typename detail::mistake_of<ops::gelu_op, X>::fix>
void geglu(const X&, detail::whole = -1) = delete;

}  // namespace sinter
