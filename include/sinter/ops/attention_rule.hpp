// sinter/ops/attention_rule.hpp: what kernels of attention know of scores on every device: which keys a query sees,
// where its mask lies, and the numbers of its weights.
#pragma once

#include "sinter/ops/attention.hpp"

namespace sinter::ops {

/// The mask of attention in memory; an extent that it is broadcast along has stride 0.
template <class M>
struct mask_in_memory {
  const M* data = nullptr;
  index_t batch = 0, head = 0, query = 0, key = 0;
};
/// Of a mask with these extents and strides, where the queries have rank `of_queries`.
template <class M, int R>
mask_in_memory<M> mask_at(const M* data, const extents<R>& shape, const extents<R>& strides, int of_queries) {
  const auto stride = [&](int from_last) -> index_t {
    const int axis = R - 1 - from_last;
    return axis < 0 || shape[axis] == 1 ? 0 : strides[axis];
  };
  return {data, stride(of_queries - 1), of_queries == 4 ? stride(2) : 0, stride(1), stride(0)};
}

/// A query: where its scores stand, and which keys it may see.
template <class M>
struct query_place {
  index_t batch, head, query;
  key_range keys;
  const M* mask;  ///< of key 0
};

/// What attention makes of scores: the formula, the mask, and the keys that a query sees. M: elements of the mask, or
/// void.
template <class Score, class Dropout, class M>
struct attention_rule {
  using mask_type = M;
  static constexpr bool draws = !std::is_same_v<Dropout, no_dropout>;
  static constexpr bool plain = std::is_same_v<Score, plain_score> && std::is_void_v<M>;

  attention_extents e;
  Score score;
  Dropout dropout;
  mask_in_memory<M> mask;
  bool causal;

  /// Outside of it queries [first, last) see nothing.
  SINTER_WORD key_range keys(index_t batch, index_t head, index_t first, index_t last) const {
    key_range r{0, e.keys};
    if (causal && last + e.keys - e.queries < r.end) r.end = last + e.keys - e.queries;
    if constexpr (requires { score.keys(batch, head, first, last); }) {
      const key_range of_score = score.keys(batch, head, first, last);
      if (of_score.begin > r.begin) r.begin = of_score.begin;
      if (of_score.end < r.end) r.end = of_score.end;
    }
    if (r.end < r.begin) r.end = r.begin;
    return r;
  }
  SINTER_WORD query_place<M> at(index_t batch, index_t head, index_t query) const {
    const M* row = nullptr;
    if constexpr (!std::is_void_v<M>) row = mask.data + batch * mask.batch + head * mask.head + query * mask.query;
    return {batch, head, query, keys(batch, head, query, query + 1), row};
  }
  /// The number of a weight in a draw for all.
  SINTER_WORD index_t number(const query_place<M>& q, index_t key) const {
    return ((q.batch * e.heads + q.head) * e.queries + q.query) * e.keys + key;
  }
};

}  // namespace sinter::ops
