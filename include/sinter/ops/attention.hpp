// sinter/ops/attention.hpp: scaled dot-product attention.
#pragma once

#include <cmath>
#include <optional>

#include "sinter/ops/attention_score.hpp"
#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

struct use_queries_keys_and_values_of_one_rank_3_or_4;
struct use_a_mask_of_bool_or_of_the_element_type_of_the_queries;
template <int Least, int Most>
struct use_a_mask_of_rank;

/// What attention does besides the formula.
///
///     attention(q, k, v, {.causal = true, .scale = 0.125});
struct write_dot_causal;
struct write_dot_dropout_and_pass_a_generator;
struct attention_options {
  bool causal = false;               ///< query i sees keys up to i + (keys - queries): the last query sees all
  std::optional<double> scale = {};  ///< of the scores; 1 / sqrt(size of a key) where none is given
  double dropout = 0;                ///< the probability with which a weight is zeroed; needs a generator
  [[no_unique_address]] detail::option_named_otherwise<write_dot_dropout_and_pass_a_generator> dropout_p = {};
  [[no_unique_address]] detail::option_named_otherwise<write_dot_causal> is_causal = {};
};

namespace ops {

enum class attention_mask { none, boolean, additive };

struct attention_extents {
  index_t batch, heads, key_heads, queries, keys, size, value_size;
};

/// Weights as they are.
struct no_dropout {};

SINTER_SHARED void check_attention(const attention_extents& e, sinter::detail::shape_piece q,
                                   sinter::detail::shape_piece k, sinter::detail::shape_piece v);
SINTER_SHARED void check_attention_mask(const attention_extents& e, sinter::detail::shape_piece q,
                                        sinter::detail::shape_piece mask);
SINTER_SHARED void check_attention_options(const attention_options& o, bool draws);

template <bool MaskHasGradient>
struct attention_uses {
  static constexpr unsigned all = uses::first | uses::second | uses::third | uses::fourth;
  static constexpr unsigned grad_uses[3] = {all | uses::result, all | uses::result, all & ~uses::third};
};
template <>
struct attention_uses<true> {
  static constexpr unsigned all = attention_uses<false>::all;
  static constexpr unsigned grad_uses[4] = {all | uses::result, all | uses::result, all & ~uses::third,
                                            all | uses::result};
};

/// y(n,h,i) = sum over keys j of p(n,h,i,j) v(n,h',j), where p(n,h,i) = softmax(score(scale q(n,h,i) . k(n,h',j)) +
/// mask) and h' = h / (heads / key heads). Dropout multiplies p.
template <attention_mask Mask, class Score = plain_score, class Dropout = no_dropout>
struct attention_op : kernel_op, attention_uses<Mask == attention_mask::additive> {
  static_assert(is_score<Score>);
  static constexpr const char* name = "attention";
  static constexpr attention_mask mask_kind = Mask;
  static constexpr bool keeps_order = true;
  static constexpr take takes(int) { return take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;
  /// Of each row of scores its greatest, and 1 / the sum of exponentials behind it. A row that sees nothing has
  /// infinity and 0. Both apart, or a row of the lowest finite number would lose the sum.
  template <class T, device D>
  using saves = tensor<compute_type<T>, 1, D>;

  attention_options options;
  [[no_unique_address]] Score score;
  [[no_unique_address]] Dropout dropout;

  explicit attention_op(const attention_options& o, const Score& s = {}, const Dropout& d = {})
      : options(o), score(s), dropout(d) {
    check_attention_options(o, !std::is_same_v<Dropout, no_dropout>);
  }

  template <int R>
  static attention_extents extents_of(const extents<R>& q, const extents<R>& k, index_t value_size) {
    return {q[0], R == 3 ? 1 : q[1], R == 3 ? 1 : k[1], q[R - 2], k[R - 2], q[R - 1], value_size};
  }
  double scale(const attention_extents& e) const {
    return options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(e.size > 0 ? e.size : 1));
  }

  template <int R, class... M>
  extents<R> shape(const extents<R>& q, const extents<R>& k, const extents<R>& v, const M&... mask) const {
    const attention_extents e = extents_of(q, k, v[R - 1]);
    check_attention(e, {q.data(), R}, {k.data(), R}, {v.data(), R});
    (check_attention_mask(e, {q.data(), R}, {mask.data(), static_cast<int>(mask.size())}), ...);
    if constexpr (requires { score.require_fit(e); }) score.require_fit(e);
    extents<R> y = q;
    y[R - 1] = v[R - 1];
    return y;
  }

  template <class Q, class K, class V, class... M>
  static constexpr auto mistake() {
    using namespace sinter::detail;
    using T = element_of<Q>;
    if constexpr (!floating_element<T> || !std::is_same_v<T, element_of<K>> || !std::is_same_v<T, element_of<V>>)
      return sinter::detail::mistake<operands_of_element_types<T, element_of<K>, element_of<V>>,
                                     use_floating_point_operands_of_one_type>{};
    else if constexpr ((rank_of<Q> != 3 && rank_of<Q> != 4) || rank_of<Q> != rank_of<K> || rank_of<Q> != rank_of<V>)
      return sinter::detail::mistake<operands_of_ranks<rank_of<Q>, rank_of<K>, rank_of<V>>,
                                     use_queries_keys_and_values_of_one_rank_3_or_4>{};
    else if constexpr (!((std::is_same_v<element_of<M>, bool> || std::is_same_v<element_of<M>, T>) && ...))
      return sinter::detail::mistake<operands_of_element_types<T, T, T, element_of<M>...>,
                                     use_a_mask_of_bool_or_of_the_element_type_of_the_queries>{};
    else if constexpr (!((rank_of<M> >= 2 && rank_of<M> <= rank_of<Q>) && ...))
      return sinter::detail::mistake<operands_of_ranks<rank_of<Q>, rank_of<K>, rank_of<V>, rank_of<M>...>,
                                     use_a_mask_of_rank<2, rank_of<Q>>>{};
    else return fitting<T>{};
  }
};

#if SINTER_DEFINES

SINTER_SHARED void check_attention(const attention_extents& e, sinter::detail::shape_piece q,
                                   sinter::detail::shape_piece k, sinter::detail::shape_piece v) {
  using sinter::detail::refuse;
  const int r = q.rank;
  if (k.extents[0] != q.extents[0] || v.extents[0] != q.extents[0])
    refuse<shape_error>(
        {"attention: queries of shape ", q, ", keys of shape ", k, " and values of shape ", v, " are of one batch"});
  if (k.extents[r - 1] != q.extents[r - 1])
    refuse<shape_error>({"attention: queries of shape ", q, " meet keys of shape ", k, ", which have another size"});
  if (v.extents[r - 2] != k.extents[r - 2] || (r == 4 && v.extents[1] != k.extents[1]))
    refuse<shape_error>({"attention: keys of shape ", k, " have values of shape ", v, "; each key has one value"});
  if (e.heads > 0 && (e.key_heads == 0 || e.heads % e.key_heads != 0))
    refuse<shape_error>(
        {"attention: ", e.key_heads, " heads of keys do not divide the ", e.heads, " heads of queries of shape ", q});
}

SINTER_SHARED void check_attention_mask(const attention_extents& e, sinter::detail::shape_piece q,
                                        sinter::detail::shape_piece mask) {
  const index_t scores[4] = {e.batch, e.heads, e.queries, e.keys}, flat[3] = {e.batch, e.queries, e.keys};
  const index_t* const full = q.rank == 4 ? scores : flat;
  for (int d = 0; d < mask.rank; ++d) {
    const index_t n = mask.extents[mask.rank - 1 - d];
    if (n != 1 && n != full[q.rank - 1 - d])
      sinter::detail::refuse<shape_error>({"attention: a mask of shape ", mask, " does not fit scores of shape ",
                                           sinter::detail::shape_piece{full, q.rank}, "; each extent is that or 1"});
  }
}

SINTER_SHARED void check_attention_options(const attention_options& o, bool draws) {
  using sinter::detail::refuse;
  if (!(o.dropout >= 0 && o.dropout <= 1))
    refuse<value_error>({"attention: the probability of dropout must be in [0, 1], not ", o.dropout});
  if (o.dropout > 0 && !draws)
    refuse<value_error>({"attention: dropout needs a generator; pass one behind the options"});
  if (o.scale && !std::isfinite(*o.scale)) refuse<value_error>({"attention: the scale must be finite, not ", *o.scale});
}

#endif  // SINTER_DEFINES

}  // namespace ops

namespace detail {

template <class M>
inline constexpr ops::attention_mask mask_kind_of =
    std::is_same_v<element_of<M>, bool> ? ops::attention_mask::boolean : ops::attention_mask::additive;
/// The op of attention with a mask M, or without one.
template <class Score, class Dropout, class... M>
struct attention_op_of {
  using type = ops::attention_op<ops::attention_mask::none, Score, Dropout>;
};
template <class Score, class Dropout, class M>
  requires expression<M>
struct attention_op_of<Score, Dropout, M> {
  using type = ops::attention_op<mask_kind_of<bare<M>>, Score, Dropout>;
};
template <class... M>
using plain_attention = typename attention_op_of<ops::plain_score, ops::no_dropout, M...>::type;
template <class S, class... M>
using scored_attention = typename attention_op_of<typename score_type<bare<S>>::type, ops::no_dropout, M...>::type;

}  // namespace detail

/// softmax(scale q k^T) v along the keys: queries (N,H,T,d), keys (N,H',S,d), values (N,H',S,e) => (N,H,T,e), or
/// without heads (N,T,d), (N,S,d), (N,S,e) => (N,T,e). Floating point; half and bfloat16 are computed in float. H'
/// divides H: head h of the queries meets head h / (H / H') of the keys (grouped queries). Operands may have any
/// strides; the result lies in memory as the queries do. Memory grows with T + S, never with T S: scores are made in
/// blocks, forward and again in backward, and a row keeps two numbers. Causal: query i sees keys up to i + (S - T), so
/// that the last query sees all; torch's is_causal sees keys up to i, which differs where S is not T. A query that sees
/// no key gives 0 and has gradient 0. A NaN in a key or value reaches no query that does not see it. With p =
/// softmax(scale q k^T) and D = sum(g y) along e: dv = p^T g, ds = p (g v^T - D), dq = scale ds k, dk = scale ds^T q.
/// The same bits on any number of threads. M. N. Rabe, C. Staats, "Self-attention does not need O(n^2) memory", 2021;
/// T. Dao et al., "FlashAttention", NeurIPS (2022). Errors: shape_error where operands do not fit, value_error for a
/// scale that is not finite and for dropout without a generator.
///
///     variable y = attention(queries, keys, values, {.causal = true});
template <class Q, class K, class V>
  requires detail::takes_operands<detail::plain_attention<>, Q, K, V>
detail::kernel_of<detail::plain_attention<>, Q, K, V> attention(Q&& q, K&& k, V&& v,
                                                                const attention_options& options = {}) {
  return detail::make_kernel(detail::plain_attention<>(options), std::forward<Q>(q), std::forward<K>(k),
                             std::forward<V>(v));
}

/// The same with a mask of the scores (N,H,T,S), rank 2 and more, broadcast: of bool, where true says that the query
/// sees the key, or of the queries' type, added to the scores before the softmax. -infinity hides a key; the lowest
/// finite number in all of a row leaves uniform weights. Derivative of an added mask: ds, summed where it was
/// broadcast. Errors: shape_error for a mask that does not broadcast to the scores.
///
///     variable y = attention(queries, keys, values, is_word.unsqueeze(1).unsqueeze(1));  // (N,1,1,S)
template <class Q, class K, class V, class M>
  requires(expression<M> && detail::takes_operands<detail::plain_attention<M>, Q, K, V, M>)
detail::kernel_of<detail::plain_attention<M>, Q, K, V, M> attention(Q&& q, K&& k, V&& v, M&& mask,
                                                                    const attention_options& options = {}) {
  return detail::make_kernel(detail::plain_attention<M>(options), std::forward<Q>(q), std::forward<K>(k),
                             std::forward<V>(v), std::forward<M>(mask));
}

/// The same with a formula of the scores, compiled into the kernels: score(s, at) is a function, or a struct of
/// ops::is_score, of s = scale q . k and of its place at (score_place: batch, head, query, key), for any kind of value,
/// in the words of math/. Its derivative follows from those of the words. On GPUs it is a struct with constexpr
/// operator(): CUDA takes no lambda in the type of a kernel.
///
///     variable y = attention(queries, keys, values, [](auto s, const auto&) { return 50 * math::tanh(s / 50); });
///     variable z = attention(queries, keys, values, [slopes](auto s, const auto& at) {
///       return s + slopes[at.head] * (at.key - at.query);  // ALiBi: O. Press et al., ICLR (2022)
///     });
template <class Q, class K, class V, class S>
  requires(detail::score_formula<detail::bare<S>> && detail::takes_operands<detail::plain_attention<>, Q, K, V>)
detail::kernel_of<detail::scored_attention<S>, Q, K, V> attention(Q&& q, K&& k, V&& v, const S& score,
                                                                  const attention_options& options = {}) {
  return detail::make_kernel(detail::scored_attention<S>(options, detail::score_type<S>::of(score)), std::forward<Q>(q),
                             std::forward<K>(k), std::forward<V>(v));
}
/// The same with a mask, which is added to what the formula gives.
template <class Q, class K, class V, class M, class S>
  requires(expression<M> && detail::score_formula<detail::bare<S>> &&
           detail::takes_operands<detail::plain_attention<M>, Q, K, V, M>)
detail::kernel_of<detail::scored_attention<S, M>, Q, K, V, M> attention(Q&& q, K&& k, V&& v, M&& mask, const S& score,
                                                                        const attention_options& options = {}) {
  return detail::make_kernel(detail::scored_attention<S, M>(options, detail::score_type<S>::of(score)),
                             std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), std::forward<M>(mask));
}
template <class Q, class K, class V,
          class Problem = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::fix>
void attention(Q&&, K&&, V&&, const attention_options& = {}) = delete;
template <class Q, class K, class V, class M,
          class Problem = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::fix>
  requires expression<M>
void attention(Q&&, K&&, V&&, M&&, const attention_options& = {}) = delete;

template <class Q, class K, class V, class S,
          class Problem = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::fix>
  requires detail::score_formula<detail::bare<S>>
void attention(Q&&, K&&, V&&, const S&, const attention_options& = {}) = delete;

/// torch's name for attention.
template <class Q, class K, class V>
  requires detail::takes_operands<detail::plain_attention<>, Q, K, V>
detail::kernel_of<detail::plain_attention<>, Q, K, V> scaled_dot_product_attention(
    Q&& q, K&& k, V&& v, const attention_options& options = {}) {
  return attention(std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), options);
}
template <class Q, class K, class V, class M>
  requires(expression<M> && detail::takes_operands<detail::plain_attention<M>, Q, K, V, M>)
detail::kernel_of<detail::plain_attention<M>, Q, K, V, M> scaled_dot_product_attention(
    Q&& q, K&& k, V&& v, M&& mask, const attention_options& options = {}) {
  return attention(std::forward<Q>(q), std::forward<K>(k), std::forward<V>(v), std::forward<M>(mask), options);
}
template <class Q, class K, class V,
          class Problem = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<>, Q, K, V>::fix>
void scaled_dot_product_attention(Q&&, K&&, V&&, const attention_options& = {}) = delete;
template <class Q, class K, class V, class M,
          class Problem = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::problem,
          class Fix = typename detail::kernel_check<detail::plain_attention<M>, Q, K, V, M>::fix>
  requires expression<M>
void scaled_dot_product_attention(Q&&, K&&, V&&, M&&, const attention_options& = {}) = delete;

}  // namespace sinter
