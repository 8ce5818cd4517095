// sinter/random/attention_dropout.hpp: attention whose weights are dropped at random.
#pragma once

#include "sinter/ops/attention.hpp"
#include "sinter/random/dropout.hpp"

namespace sinter {
namespace detail {

/// The factors of weights, by the numbers that a draw of the shape of the scores would give them.
template <class C>
struct weight_dropout {
  bernoulli_numbers<C> keep;
  random_key key;

  /// Of neighbouring weights, the first of which has this number.
  template <class V>
  SINTER_WORD V factors(index_t first) const {
    if (keep.limit >> 32 != 0) return V(keep.yes);
    std::uint32_t words[std::size_t{math::lanes_v<V>}];
    random_words<1>(key, first, words);
    return keep.template make<V, math::lanes_v<V>>(words);
  }
};

template <class Q, class K>
auto weight_dropout_of(const attention_options& o, const Q& q, const K& k, generator& gen) {
  check_defined("attention", q);
  check_defined("attention", k);
  using C = compute_type<element_of<Q>>;
  extents<rank_of<Q>> scores = q.shape();
  scores[rank_of<Q> - 1] = k.shape()[rank_of<K> - 2];
  return weight_dropout<C>{kept_numbers<C>("attention", o.dropout), next_key<device_of<Q>>("attention", gen, scores)};
}
template <class Q, class... M>
using dropping_attention =
    typename attention_op_of<ops::plain_score, weight_dropout<compute_type<element_of<Q>>>, M...>::type;

}  // namespace detail

/// attention whose weights are zeroed with probability options.dropout, else multiplied by 1 / (1 - dropout): those
/// that dropout() of the weights would zero, had they been made. Drawn when the expression is built and never stored:
/// backward draws the same again. N. Srivastava et al., JMLR 15 (2014).
///
///     variable y = attention(q, k, v, {.causal = true, .dropout = 0.1}, gen);
template <class Q, class K, class V>
  requires detail::takes_operands<detail::plain_attention<>, Q, K, V>
detail::kernel_of<detail::dropping_attention<Q>, Q, K, V> attention(Q&& q, K&& k, V&& v,
                                                                    const attention_options& options, generator& gen) {
  const detail::dropping_attention<Q> op(options, {}, detail::weight_dropout_of(options, q, k, gen));
  return detail::make_kernel(op, std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v));
}
/// The same with a mask.
template <class Q, class K, class V, class M>
  requires(expression<M> && detail::takes_operands<detail::plain_attention<M>, Q, K, V, M>)
detail::kernel_of<detail::dropping_attention<Q, M>, Q, K, V, M> attention(Q&& q, K&& k, V&& v, M&& mask,
                                                                          const attention_options& options,
                                                                          generator& gen) {
  const detail::dropping_attention<Q, M> op(options, {}, detail::weight_dropout_of(options, q, k, gen));
  return detail::make_kernel(op, std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), std::forward<M>(mask));
}

/// torch's name for it.
template <class Q, class K, class V>
  requires detail::takes_operands<detail::plain_attention<>, Q, K, V>
detail::kernel_of<detail::dropping_attention<Q>, Q, K, V> scaled_dot_product_attention(Q&& q, K&& k, V&& v,
                                                                                       const attention_options& options,
                                                                                       generator& gen) {
  return attention(std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), options, gen);
}
template <class Q, class K, class V, class M>
  requires(expression<M> && detail::takes_operands<detail::plain_attention<M>, Q, K, V, M>)
detail::kernel_of<detail::dropping_attention<Q, M>, Q, K, V, M> scaled_dot_product_attention(
    Q&& q, K&& k, V&& v, M&& mask, const attention_options& options, generator& gen) {
  return attention(std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), std::forward<M>(mask), options, gen);
}
template <class Q, class K, class V,
          class Problem = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::fix>
void attention(Q&&, K&&, V&&, const attention_options&, generator&) = delete;
template <class Q, class K, class V, class M,
          class Problem = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::fix>
  requires expression<M>
void attention(Q&&, K&&, V&&, M&&, const attention_options&, generator&) = delete;

}  // namespace sinter
