// sinter/ops/prelu.hpp: the rectifier whose slope below 0 is learned.
#pragma once

#include "sinter/grad/statement.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/ternary.hpp"

namespace sinter {

struct use_one_weight_or_one_for_each_channel;

namespace ops {

struct prelu_op : real_op {
  static constexpr const char* name = "prelu";
  static constexpr unsigned grad_uses[2] = {uses::first | uses::second, uses::first};
  template <class V>
  SINTER_WORD static V apply(V x, V w) {
    return math::select(x > 0, x, x * w);
  }
  template <int I, class G, class X, class W, class Y>
  SINTER_WORD static auto grad(const G& g, const X& x, const W& w, const Y&) {
    if constexpr (I == 0) return select(x > 0, g, g * w);
    else return select(x > 0, zero_of(g), g * x);
  }
};

}  // namespace ops

namespace detail {

template <class X, class W>
constexpr auto find_prelu_mistake() {
  if constexpr (!expression<X> || !expression<W>) return no_operands<X, W>{};
  else if constexpr (!fits<ops::prelu_op, X, W>) return mistake_of<ops::prelu_op, X, W>{};
  else if constexpr (reads_name<W>)
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (rank_of<W> > 1)
    return mistake<operands_of_ranks<rank_of<X>, rank_of<W>>, use_one_weight_or_one_for_each_channel>{};
  else return fitting<element_of<X>>{};
}
template <class X, class W>
using prelu_mistake = decltype(find_prelu_mistake<bare<X>, bare<W>>());

SINTER_SHARED void check_prelu_weights(index_t weights, index_t channels);
#if SINTER_DEFINES
SINTER_SHARED void check_prelu_weights(index_t weights, index_t channels) {
  if (weights != 1 && weights != channels)
    refuse<shape_error>(
        {"prelu: ", weights, " weights for ", channels, " channels; there is one, or one for each channel"});
}
#endif

}  // namespace detail

/// x where x > 0, otherwise w x; elementwise, floating point. There is one weight w, or one for each channel, which are
/// axis 1 of x: (N,C,…) and (C,). Derivative: g, or w g, to x; to w the sum of g x where x is not above 0. Errors:
/// shape_error for another number of weights. He et al., "Delving deep into rectifiers", 2015.
///
///     variable y = prelu(x, slope);
template <class X, class W>
  requires(detail::is_fitting<detail::prelu_mistake<X, W>>)
auto prelu(X&& x, W&& weight) {
  if constexpr (rank_of<W> == 0) {
    return detail::make_binary(ops::prelu_op{}, std::forward<X>(x), std::forward<W>(weight));
  } else {
    constexpr int R = rank_of<X>;
    detail::check_defined("prelu", x);
    const auto w = detail::eval_to_read(std::forward<W>(weight));
    detail::check_defined("prelu", w);
    detail::check_prelu_weights(w.numel(), R < 2 ? 1 : x.shape()[R < 2 ? 0 : 1]);
    index_t shape[std::size_t{R > 0 ? R : 1}] = {};
    for (index_t& n : shape) n = 1;
    shape[R < 2 ? 0 : 1] = w.numel();
    if constexpr (R == 0) return detail::make_binary(ops::prelu_op{}, std::forward<X>(x), w.select(0, 0));
    else return detail::make_binary(ops::prelu_op{}, std::forward<X>(x), w.reshape(shape));
  }
}
SINTER_REJECTIONS_OF_TWO(prelu, detail::prelu_mistake)

}  // namespace sinter
