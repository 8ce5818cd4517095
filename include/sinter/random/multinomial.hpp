// sinter/random/multinomial.hpp: numbers of categories, drawn by their probabilities.
#pragma once

#include "sinter/ops/all.hpp"
#include "sinter/ops/argmax.hpp"
#include "sinter/ops/greater_equal.hpp"
#include "sinter/ops/isfinite.hpp"
#include "sinter/ops/log.hpp"
#include "sinter/ops/logical_and.hpp"
#include "sinter/ops/negate.hpp"
#include "sinter/ops/not_equal.hpp"
#include "sinter/ops/sort.hpp"
#include "sinter/ops/subtract.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

template <class...>
struct weights_of_element_type;
template <int...>
struct weights_of_rank;
struct use_floating_point_weights;
struct use_weights_of_rank_1_or_2;

namespace detail {

template <class P>
constexpr auto find_multinomial_mistake() {
  if constexpr (!expression<P>) return no_operands<P>{};
  else if constexpr (is_tracked_v<P>)
    return mistake<expression_is_tracked_for_gradients, declare_a_variable_or_use_detach>{};
  else if constexpr (!floating_element<element_of<P>>)
    return mistake<weights_of_element_type<element_of<P>>, use_floating_point_weights>{};
  else if constexpr (rank_of<P> != 1 && rank_of<P> != 2)
    return mistake<weights_of_rank<rank_of<P>>, use_weights_of_rank_1_or_2>{};
  else return fitting<std::int64_t>{};
}
template <class P>
using multinomial_mistake = decltype(find_multinomial_mistake<bare<P>>());

/// log(weights) plus noise by Gumbel: the largest is category i with its probability. E. Gumbel, 1954.
template <int R, class W>
auto noisy_logarithms(generator& gen, const W& weights, const extents<R>& shape) {
  const auto u = rand<double, device_of<W>>(gen, shape);
  return eval(log(cast<double>(weights)) - log(-log(u)));
}

}  // namespace detail

/// n categories for each row of weights, (C) => (n) or (N,C) => (N,n), of int64. Weights are probabilities up to a
/// factor. Without replacement the n categories of a row differ. As torch.multinomial; the numbers depend on the state
/// of the generator alone, not on the device. W. Kool et al., ICML 2019. Errors: value_error where a weight is
/// negative, infinite or NaN, or a row has fewer categories with a weight than are drawn from it.
///
///     tensor next = multinomial(gen, softmax(scores, -1), 1);
template <class P>
  requires(detail::is_fitting<detail::multinomial_mistake<P>>)
tensor<std::int64_t, rank_of<P>, device_of<P>> multinomial(generator& gen, const P& weights, detail::whole n,
                                                           bool replacement = false) {
  static constexpr const char* op = "multinomial";
  constexpr int R = rank_of<P>;
  using D = device_of<P>;
  detail::check_defined(op, weights);
  const tensor<element_of<P>, R, D> w = eval(weights);
  const index_t rows = R == 1 ? 1 : w.shape()[0], categories = w.shape()[R - 1];
  if (n < 0) detail::refuse<value_error>({op, ": ", index_t{n}, " draws"});
  if (!eval(all(isfinite(w) && w >= element_of<P>(0))).item())
    detail::refuse<value_error>({op, ": a weight is negative, infinite or NaN"});
  const auto there = eval(sum(cast<std::int64_t>(w != element_of<P>(0)), R - 1));
  const index_t needed = n == 0 ? 0 : replacement ? 1 : index_t{n};
  if (rows > 0 && eval(all(there >= std::int64_t{needed})).item() == false)
    detail::refuse<value_error>({op, ": ", index_t{n}, " draws ", replacement ? "with" : "without",
                                 " replacement need ", needed, " categories with a weight in each row of shape ",
                                 w.shape()});
  extents<R> shape = w.shape();
  if (n == 1 || !replacement) {
    const auto noisy = detail::noisy_logarithms<R>(gen, w, shape);
    return topk(noisy, n, R - 1).indices;
  }
  extents<R + 1> repeated;
  for (int d = 0; d + 1 < R; ++d) repeated[d] = shape[d];
  repeated[R - 1] = n;
  repeated[R] = categories;
  return eval(argmax(detail::noisy_logarithms<R + 1>(gen, w.unsqueeze(R - 1), repeated), R));
}
template <class P, class... More, class Problem = typename detail::multinomial_mistake<P>::problem,
          class Fix = typename detail::multinomial_mistake<P>::fix>
void multinomial(generator&, P&&, More...) = delete;
struct generator_behind;
struct write_the_generator_first;
template <expression P, class... More, class Problem = generator_behind, class Fix = write_the_generator_first>
  requires(std::is_same_v<std::remove_reference_t<More>, generator> || ...)
void multinomial(const P&, More&&...) = delete;

}  // namespace sinter
