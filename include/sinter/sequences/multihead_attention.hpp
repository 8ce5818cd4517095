// sinter/sequences/multihead_attention.hpp: attention with projections of queries, keys, values and results.
#pragma once

#include "sinter/nn/init.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/matmul_axes.hpp"
#include "sinter/random/attention_dropout.hpp"
#include "sinter/sequences/heads.hpp"

namespace sinter::nn {

struct multihead_options {
  double dropout = 0;  ///< of the weights of attention, in training mode
  bool bias = true;
  bool batch_first = false;    ///< (N,T,features) in place of (T,N,features)
  index_t key_features = 0;    ///< PyTorch's kdim; 0: as many as the queries have
  index_t value_features = 0;  ///< PyTorch's vdim; likewise
  bool causal = false;         ///< token i sees tokens up to i
  bool add_bias_kv = false;    ///< one more key and value, parameters bias_k and bias_v, that every query sees
  bool add_zero_attn = false;  ///< one more key and value of zeros, likewise
  bool operator==(const multihead_options&) const = default;
};
template <>
inline constexpr bool is_setting<multihead_options> = true;

namespace detail {

SINTER_SHARED_COLD void check_multihead(index_t features, index_t heads, const multihead_options& options);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_multihead(index_t features, index_t heads, const multihead_options& o) {
  using sinter::detail::refuse;
  if (heads < 1 || features < 1 || features % heads != 0)
    refuse<value_error>({"multihead_attention: ", heads, " heads do not divide ", features, " features"});
  if (!(o.dropout >= 0 && o.dropout <= 1))
    refuse<value_error>({"multihead_attention: the probability of dropout must be in [0, 1], not ", o.dropout});
  if (o.key_features < 0 || o.value_features < 0)
    refuse<value_error>(
        {"multihead_attention: keys of ", o.key_features, " and values of ", o.value_features, " features"});
}
#endif  // SINTER_DEFINES

/// x w^T + b, or without b where it is undefined.
template <class X, class W, class B>
auto projected(const X& x, const W& w, const B& b) {
  return b.defined() ? sinter::eval(sinter::linear(x, w, b)) : sinter::eval(sinter::linear(x, w));
}

}  // namespace detail

/// Attention of several heads: queries, keys and values are projected to `features`, split into heads, attended (see
/// attention), put side by side and projected again. x (T,N,features), with batch_first (N,T,features), or one sequence
/// (T,features): attention(x) of a sequence to itself, attention(q, k, v) to another; a mask comes last. Parameters are
/// those of torch.nn.MultiheadAttention, by its names, and initialised like them. A mask of bool is true where a query
/// sees a key, as that of attention() and of torch's scaled_dot_product_attention; torch.nn.MultiheadAttention takes
/// the opposite. Weights are not returned: they are never stored. A. Vaswani et al., NIPS (2017).
///
///     nn::multihead_attention attention(256, 8, gen, {.batch_first = true, .causal = true});
///     auto y = attention(x);                     // (N,T,256) => (N,T,256)
///     auto z = attention(x, memory, memory);     // of another length
template <floating_element T = float, device D = cpu, class Kind = tracked>
class multihead_attention : public module<multihead_attention<T, D, Kind>> {
 public:
  using device_type = D;
  using kind = Kind;
  template <class To, class K>
  using rebind = multihead_attention<T, To, K>;

  multihead_attention() = default;
  multihead_attention(index_t features, index_t heads, generator& gen, const multihead_options& options = {})
      : options_(options),
        features_(features),
        heads_(heads),
        source_(options.dropout > 0 ? gen.split() : generator()) {
    detail::check_multihead(features, heads, options);
    const index_t kf = options.key_features > 0 ? options.key_features : features;
    const index_t vf = options.value_features > 0 ? options.value_features : features;
    const auto drawn = [&](index_t rows, index_t columns) {
      return init::xavier_uniform<T, D>(gen, extents<2>{{rows, columns}});
    };
    if (kf == features && vf == features) {
      in_proj_weight = drawn(3 * features, features);
    } else {
      q_proj_weight = drawn(features, features);
      k_proj_weight = drawn(features, kf);
      v_proj_weight = drawn(features, vf);
    }
    out_proj_weight = init::fan_in_uniform<T, D>(gen, features, extents<2>{{features, features}});
    if (options.bias) {
      in_proj_bias = zeros<T, D>(extents<1>{{3 * features}});
      out_proj_bias = zeros<T, D>(extents<1>{{features}});
    }
    if (options.add_bias_kv) {
      bias_k = init::xavier_normal<T, D>(gen, extents<3>{{1, 1, features}});
      bias_v = init::xavier_normal<T, D>(gen, extents<3>{{1, 1, features}});
    }
  }

  template <class... X>
  static constexpr bool takes = (std::is_same_v<element_of<X>, T> && ...);

  const multihead_options& options() const { return options_; }
  index_t heads() const { return heads_; }
  index_t features() const { return features_; }

  /// Of a sequence to itself.
  template <expression X>
    requires(takes<X> && (rank_of<X> == 2 || rank_of<X> == 3))
  auto forward(const X& x) const {
    return to_itself(x);
  }
  template <expression X, expression M>
    requires(takes<X> && (rank_of<X> == 2 || rank_of<X> == 3) && rank_of<M> >= 2)
  auto forward(const X& x, const M& mask) const {
    return to_itself(x, mask);
  }
  /// Of the next tokens to all before them and to themselves, whether `causal` is set or not: keys and values of
  /// earlier ones are in the cache, where those of x are added. A cache that rolls is a window: a token sees the newest
  /// `capacity`.
  template <expression X>
    requires(takes<X> && (rank_of<X> == 2 || rank_of<X> == 3))
  auto forward(const X& x, key_value_cache<T, D>& cache) const {
    const auto in = batches(x);
    const auto p = projections(in);
    const index_t tokens = p.q.shape()[2];
    const auto part = [&](index_t begin, index_t end) {
      cache.append(p.k.slice(2, begin, end), p.v.slice(2, begin, end));
      return attended(p.q.slice(2, begin, end), cache.keys(), cache.values(), true);
    };
    const index_t room = cache.capacity() - cache.size();
    if (!cache.rolls() || tokens <= room) return as_given<rank_of<X>>(part(0, tokens));
    std::vector<value<3>> all;
    if (room > 0) all.push_back(part(0, room));
    for (index_t at = room; at < tokens; ++at) all.push_back(part(at, at + 1));
    return as_given<rank_of<X>>(value<3>(concat(1, all)));
  }
  template <expression Q, expression K, expression V>
    requires(takes<Q, K, V> && rank_of<Q> == rank_of<K> && rank_of<Q> == rank_of<V> &&
             (rank_of<Q> == 2 || rank_of<Q> == 3))
  auto forward(const Q& q, const K& k, const V& v) const {
    return to_other(q, k, v);
  }
  template <expression Q, expression K, expression V, expression M>
    requires(takes<Q, K, V> && rank_of<Q> == rank_of<K> && rank_of<Q> == rank_of<V> &&
             (rank_of<Q> == 2 || rank_of<Q> == 3))
  auto forward(const Q& q, const K& k, const V& v, const M& mask) const {
    return to_other(q, k, v, mask);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("options", m.options_...);
    f("features", m.features_...);
    f("heads", m.heads_...);
    f("mode", m.mode_...);
    f("source", m.source_...);
    const auto& like = detail::last_of(m...);
    if (like.has_one_projection()) {
      f("in_proj_weight", m.in_proj_weight...);
    } else {
      f("q_proj_weight", m.q_proj_weight...);
      f("k_proj_weight", m.k_proj_weight...);
      f("v_proj_weight", m.v_proj_weight...);
    }
    if (like.options().bias) f("in_proj_bias", m.in_proj_bias...);
    if (like.options().add_bias_kv) {
      f("bias_k", m.bias_k...);
      f("bias_v", m.bias_v...);
    }
    f("out_proj.weight", m.out_proj_weight...);
    if (like.options().bias) f("out_proj.bias", m.out_proj_bias...);
  }

  using matrix = parameter<T, 2, D, Kind>;
  using vector = parameter<T, 1, D, Kind>;
  matrix in_proj_weight;                               ///< those of queries, keys and values, one below the other
  matrix q_proj_weight, k_proj_weight, v_proj_weight;  ///< in its place where their features differ
  vector in_proj_bias;
  parameter<T, 3, D, Kind> bias_k, bias_v;
  matrix out_proj_weight;
  vector out_proj_bias;

 private:
  template <floating_element, device, class>
  friend class multihead_attention;
  template <int R>
  using value = parameter<T, R, D, Kind>;

  /// Queries, keys and values (N,heads,T,d).
  struct projected_heads {
    value<4> q, k, v;
  };

  bool has_one_projection() const {
    const auto fits = [this](index_t n) { return n == 0 || n == features_; };
    return fits(options_.key_features) && fits(options_.value_features);
  }

  /// x as (N,T,features).
  template <class X>
  value<3> batches(const X& x) const {
    sinter::detail::check_defined("multihead_attention", x);
    const auto one = sinter::detail::value_as<value<rank_of<X>>>(x);
    if constexpr (rank_of<X> == 2) return one.unsqueeze(0);
    else return options_.batch_first ? one : one.transpose(0, 1);
  }
  template <int R>
  auto as_given(const value<3>& y) const {
    if constexpr (R == 2) return y.squeeze(0);
    else return options_.batch_first ? y : y.transpose(0, 1);
  }

  /// Of x to itself, with one product for all three.
  projected_heads projections(const value<3>& x) const {
    if (!has_one_projection()) return projections(x, x, x);
    const value<3> all = detail::projected(x, in_proj_weight, in_proj_bias);
    const auto& s = all.shape();
    const auto parts = all.reshape({s[0], s[1], 3, heads_, features_ / heads_});
    const auto part = [&](index_t i) { return parts.select(2, i).transpose(1, 2); };
    return {part(0), part(1), part(2)};
  }
  projected_heads projections(const value<3>& q, const value<3>& k, const value<3>& v) const {
    const auto head = [&](const value<3>& x, const matrix& own, index_t i) -> value<4> {
      const auto bias =
          in_proj_bias.defined() ? in_proj_bias.slice(0, i * features_, (i + 1) * features_) : in_proj_bias;
      const matrix w = own.defined() ? own : in_proj_weight.slice(0, i * features_, (i + 1) * features_);
      return split_heads(value<3>(detail::projected(x, w, bias)), heads_);
    };
    return {head(q, q_proj_weight, 0), head(k, k_proj_weight, 1), head(v, v_proj_weight, 2)};
  }

  index_t added_keys() const { return (options_.add_bias_kv ? 1 : 0) + (options_.add_zero_attn ? 1 : 0); }
  /// Keys or values behind those that are added to each sequence: with `causal` a query sees all keys up to its own.
  value<4> with_added(const value<4>& x, const parameter<T, 3, D, Kind>& bias) const {
    const auto& s = x.shape();
    std::vector<value<4>> all;
    if (options_.add_bias_kv) all.push_back(split_heads(bias, heads_).broadcast_to({s[0], heads_, 1, s[3]}));
    if (options_.add_zero_attn) all.push_back(sinter::detail::value_as<value<4>>(zeros<T, D>({s[0], heads_, 1, s[3]})));
    all.push_back(x);
    return concat(2, all);
  }
  /// The mask of `keys` keys with one of those that are added.
  template <class M>
  auto with_added(const M& mask, index_t keys) const {
    constexpr int R = rank_of<M>;
    using E = element_of<M>;
    const auto m = sinter::eval(mask);
    extents<R> shape = m.shape();
    shape[R - 1] = added_keys();
    const auto seen = full<E, D>(shape, std::is_same_v<E, bool> ? E(1) : E(0));
    shape[R - 1] = keys;
    return concat(R - 1, seen, m.shape()[R - 1] == keys ? m : decltype(m)(m.broadcast_to(shape.values)));
  }

  template <class... M>
  value<3> attended(const value<4>& q, const value<4>& keys, const value<4>& values, bool causal,
                    const M&... mask) const;
  template <class... M>
  value<3> merged(const value<4>& q, const value<4>& k, const value<4>& v, bool causal, const M&... mask) const;
  template <class X, class... M>
  auto to_itself(const X& x, const M&... mask) const {
    const auto [q, k, v] = projections(batches(x));
    return as_given<rank_of<X>>(attended(q, k, v, options_.causal, mask...));
  }
  template <class Q, class K, class V, class... M>
  auto to_other(const Q& q, const K& k, const V& v, const M&... mask) const {
    const auto p = projections(batches(q), batches(k), batches(v));
    return as_given<rank_of<Q>>(attended(p.q, p.k, p.v, options_.causal, mask...));
  }

  multihead_options options_;
  index_t features_ = 0, heads_ = 0;
  mode mode_;
  mutable generator source_;
};
multihead_attention(index_t, index_t, generator&, const multihead_options& = {}) -> multihead_attention<>;

// Out of the class, so that sinter::compiled can hold it.
template <floating_element T, device D, class Kind>
template <class... M>
parameter<T, 3, D, Kind> multihead_attention<T, D, Kind>::attended(const value<4>& q, const value<4>& keys,
                                                                   const value<4>& values, bool causal,
                                                                   const M&... mask) const {
  if (added_keys() == 0) return merged(q, keys, values, causal, mask...);
  return merged(q, with_added(keys, bias_k), with_added(values, bias_v), causal, with_added(mask, keys.shape()[2])...);
}
template <floating_element T, device D, class Kind>
template <class... M>
parameter<T, 3, D, Kind> multihead_attention<T, D, Kind>::merged(const value<4>& q, const value<4>& k,
                                                                 const value<4>& v, bool causal,
                                                                 const M&... mask) const {
  attention_options how{.causal = causal};
  const auto finish = [this](const auto& y) -> value<3> {
    return detail::projected(value<3>(merge_heads(sinter::eval(y))), out_proj_weight, out_proj_bias);
  };
  if constexpr (std::is_same_v<Kind, tracked>) {
    if (mode_.training && options_.dropout > 0) {
      how.dropout = options_.dropout;
      return finish(sinter::attention(q, k, v, mask..., how, source_));
    }
  }
  return finish(sinter::attention(q, k, v, mask..., how));
}

}  // namespace sinter::nn
