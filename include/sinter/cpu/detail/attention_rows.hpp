// sinter/cpu/detail/attention_rows.hpp: what happens to the scores of attention between its products, row by row.
#pragma once

#include <limits>

#include "sinter/cpu/detail/attention_pack.hpp"
#include "sinter/ops/attention_rule.hpp"

namespace sinter::cpu_impl::detail {

using ops::query_place;

/// What attention makes of scores, vector by vector.
template <class Score, class Dropout, class M>
struct score_rule : ops::attention_rule<Score, Dropout, M> {
  using base = ops::attention_rule<Score, Dropout, M>;
  using base::score, base::dropout, base::mask;

  template <class C>
  SINTER_INLINE score_place<strip_vector<C>> place(const query_place<M>& q, index_t key) const {
    using V = strip_vector<C>;
    return {q.batch, q.head, q.query, key, V(static_cast<C>(q.query)), lanes_of<V>() + V(static_cast<C>(key))};
  }
  /// The value of scores of keys that are all there.
  template <class V>
  SINTER_INLINE V value(V s, const query_place<M>& q, const score_place<V>& at) const {
    using C = math::element_t<V>;
    V v = score.apply(s, at);
    if constexpr (std::is_same_v<M, bool>)
      v = math::select(mask_lanes<V>(q, at.key_index), v, V(-std::numeric_limits<C>::infinity()));
    else if constexpr (!std::is_void_v<M>) v = with_added(v, read_lanes<V>(q.mask + at.key_index * mask.key));
    return v;
  }
  /// The same where some are not: these are hidden.
  template <class V>
  SINTER_INLINE V value_at_edge(V s, const query_place<M>& q, const score_place<V>& at) const {
    using C = math::element_t<V>;
    const V hidden(-std::numeric_limits<C>::infinity()), lane = lanes_of<V>();
    V v = score.apply(s, at);
    if constexpr (!std::is_void_v<M>) v = masked_at_edge(v, q, at.key_index);
    const auto seen = math::logical_and(lane >= V(static_cast<C>(q.keys.begin - at.key_index)),
                                        lane < V(static_cast<C>(q.keys.end - at.key_index)));
    return math::select(seen, v, hidden);
  }
  /// What weights of these keys are multiplied with.
  template <class V>
  SINTER_INLINE V factors(const query_place<M>& q, index_t key) const {
    return dropout.template factors<V>(this->number(q, key));
  }

 private:
  /// A key that -infinity hides may have any score, NaN too.
  template <class V>
  SINTER_INLINE static V with_added(V score, V mask) {
    const V hidden = math::constant<V>(-std::numeric_limits<math::element_t<V>>::infinity());
    return math::select(mask == hidden, hidden, score + mask);
  }
  template <class C>
  struct counts {
    C of[strip_lanes<C>];
    constexpr counts() : of() {
      for (int i = 0; i < strip_lanes<C>; ++i) of[i] = static_cast<C>(i);
    }
  };
  template <class V>
  SINTER_INLINE static V lanes_of() {
    alignas(64) static constexpr counts<math::element_t<V>> lane{};
    return V::load(lane.of);
  }
  /// Under the mask where only some keys are there: it is read for these alone.
  template <class V>
  V masked_at_edge(V v, const query_place<M>& q, index_t first) const {
    using C = math::element_t<V>;
    alignas(64) C one[math::lanes_v<V>];
    v.store(one);
    for (index_t i = 0; i < math::lanes_v<V>; ++i) {
      if (first + i < q.keys.begin || first + i >= q.keys.end) continue;
      const auto m = q.mask[(first + i) * mask.key];
      if constexpr (!std::is_same_v<M, bool>) one[i] = with_added(one[i], static_cast<C>(m));
      else if (!m) one[i] = -std::numeric_limits<C>::infinity();
    }
    return V::load(one);
  }
  template <class V>
  SINTER_INLINE math::simd<bool, math::lanes_v<V>> mask_lanes(const query_place<M>& q, index_t key) const {
    constexpr int lanes = math::lanes_v<V>;
    if (mask.key == 1) return math::simd<bool, lanes>::load(q.mask + key);
    alignas(64) bool some[std::size_t{lanes}];
    for (int i = 0; i < lanes; ++i) some[i] = q.mask[(key + i) * mask.key];
    return math::simd<bool, lanes>::load(some);
  }
  template <class V, class E>
  SINTER_INLINE V read_lanes(const E* from) const {
    constexpr int lanes = math::lanes_v<V>;
    using C = math::element_t<V>;
    if (mask.key == 1) return math::read<lanes>(from);
    alignas(64) C some[std::size_t{lanes}];
    for (int i = 0; i < lanes; ++i) some[i] = from[i * mask.key];
    return V::load(some);
  }
};

/// e^x for x <= 0. Weights of e^-87 and less are 0: those near the smallest number would take many times as long.
template <class V>
SINTER_INLINE V weight_of(V x) {
  using C = math::element_t<V>;
  constexpr C least = sizeof(C) == 4 ? C(-87) : C(-708);
  if constexpr (std::is_same_v<C, float>) {
    const auto [shifted, r] = math::detail::reduce_by_ln2<127>(x);
    const V p = math::detail::exp_small(r) * math::detail::power_of_two(shifted);
    return math::select(x < V(least), V(C(0)), p);
  } else {
    return math::select(x < V(least), V(C(0)), math::exp(x));
  }
}

/// A row of a block of scores: columns [begin, end), whole strips, of which column 0 is key `first`.
template <class C>
struct score_row {
  C* data;
  index_t step;  ///< between strips
  index_t begin, end, first;

  /// f(vector of scores, key of its first lane, all keys are seen or masked one by one)
  template <class Range, class F>
  SINTER_INLINE void each(const Range& keys, const F& f) const {
    constexpr index_t lanes = strip_lanes<C>;
    for (index_t c = begin; c < end; c += strip<C>) {
      C* const s = data + c / strip<C> * step;
      for (index_t i = 0; i < strip<C>; i += lanes) {
        const index_t key = first + c + i;
        f(s + i, key, key >= keys.begin && key + lanes <= keys.end);
      }
    }
  }
  void clear() const {
    for (index_t c = begin; c < end; c += strip<C>)
      for (index_t i = 0; i < strip<C>; ++i) data[c / strip<C> * step + i] = C(0);
  }
};

/// The greatest score of a row so far, and the sum of exponentials behind it, in lanes.
template <class C>
struct softmax_state {
  C greatest = -std::numeric_limits<C>::infinity();
  strip_vector<C> sum{C(0)};
};

/// Keeps for backward the greatest score of a row and 1 / the sum of its weights, which it returns; 0 for a row that
/// sees nothing.
template <class C>
C keep_row(C greatest, C sum, C* saved) {
  const bool sees = sum != C(0);
  saved[0] = sees ? greatest : std::numeric_limits<C>::infinity();
  saved[1] = sees ? C(1) / sum : C(0);
  return saved[1];
}

/// Scores of a row to weights exp(score - greatest). Returns what earlier weights are to be multiplied with.
template <class C, class Rule>
SINTER_INLINE C take_scores(const Rule& rule, const query_place<typename Rule::mask_type>& q, const score_row<C>& row,
                            softmax_state<C>& state) {
  using V = strip_vector<C>;
  V most(-std::numeric_limits<C>::infinity());
  row.each(q.keys, [&](C* s, index_t key, bool inside) SINTER_INLINE_LAMBDA {
    V v = V::load(s);
    if (!inside) {
      v = rule.value_at_edge(v, q, rule.template place<C>(q, key));
      v.store(s);
    } else if constexpr (!Rule::plain) {
      v = rule.value(v, q, rule.template place<C>(q, key));
      v.store(s);
    }
    most = math::max(v, most);
  });
  C again(1);
  if (!math::all(most <= V(state.greatest))) {  // greater, or NaN
    const C before = state.greatest;
    state.greatest = math::max(before, math::hmax(most));
    again = math::exp(before - state.greatest);
    state.sum = state.sum * V(again);
  }
  if (state.greatest == -std::numeric_limits<C>::infinity()) {
    row.clear();
    return again;
  }
  const V shift(state.greatest);
  V sum(C(0));
  row.each(q.keys, [&](C* s, [[maybe_unused]] index_t key, bool) SINTER_INLINE_LAMBDA {
    V p = weight_of(V::load(s) - shift);
    sum = sum + p;
    if constexpr (Rule::draws) p = p * rule.template factors<V>(q, key);
    p.store(s);
  });
  state.sum = state.sum + sum;
  return again;
}

/// Backward: scores to weights, and the gradients of weights, over the sum of the row, to those of scores, or of what
/// the mask adds to them. The row has its greatest score, 1 / the sum of its weights, and the mean of the gradients by
/// their weights, which is the product of a row of the result and its gradient. A row that is `whole` has all of its
/// keys here: what rounding added to the sum and to the mean is taken off again, so that the gradients of scores add up
/// to 0 as far as they differ, not as far as those of weights are large.
template <bool OfMask, class C, class Rule>
void reverse_scores(const Rule& rule, const query_place<typename Rule::mask_type>& q, const score_row<C>& row,
                    C* gradients, const C* kept, C mean, bool whole) {
  using V = strip_vector<C>;
  const V shift(kept[0]), delta(mean), zero(C(0));
  const index_t apart = gradients - row.data;
  const auto value_of = [&](V x, index_t key, bool inside) SINTER_INLINE_LAMBDA {
    const auto at = rule.template place<C>(q, key);
    return inside ? rule.value(x, q, at) : rule.value_at_edge(x, q, at);
  };
  const auto drop = [&](V x, [[maybe_unused]] index_t key) SINTER_INLINE_LAMBDA {
    if constexpr (Rule::draws) return x * rule.template factors<V>(q, key);
    else return x;
  };
  V factor(C(1)), rest = zero;
  if (whole) {
    V weights = zero, sum = zero;
    row.each(q.keys, [&](C* s, index_t key, bool inside) SINTER_INLINE_LAMBDA {
      const V p = weight_of(value_of(V::load(s), key, inside) - shift);
      weights = weights + p;
      sum = sum + math::select(p == zero, zero, p * (drop(V::load(s + apart), key) - delta));
    });
    if (const C total = math::hsum(weights); total > C(0)) {
      factor = V(C(1) / (total * kept[1]));
      rest = V(math::hsum(sum) / total);
    }
  }
  row.each(q.keys, [&](C* s, index_t key, bool inside) SINTER_INLINE_LAMBDA {
    const V x = V::load(s), v = value_of(x, key, inside), p = weight_of(v - shift) * factor;
    drop(p, key).store(s);
    V g = p * ((drop(V::load(s + apart), key) - delta) - rest);
    if constexpr (!OfMask) {
      const auto at = rule.template place<C>(q, key);
      g = rule.score.grad(g, x, rule.score.apply(x, at), at);
    }
    math::select(p == zero, zero, g).store(s + apart);
  });
}

}  // namespace sinter::cpu_impl::detail
