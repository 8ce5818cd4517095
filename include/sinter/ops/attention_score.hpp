// sinter/ops/attention_score.hpp: what a score of attention is made into before the softmax, as a formula.
#pragma once

#include "sinter/core/types.hpp"
#include "sinter/expr/op_members.hpp"
#include "sinter/math/vocabulary.hpp"

namespace sinter {

/// Where scores stand: `lanes` of one query and of keys side by side. V is the kind of value of the formula.
template <class V>
struct score_place {
  index_t batch, head;             ///< of the query
  index_t query_index, key_index;  ///< of the query, and of the first of the keys
  V query, key;                    ///< the same as values, a key in each lane
};

/// Keys [begin, end).
struct key_range {
  index_t begin, end;
};

namespace ops {

/// The score as it is.
struct plain_score {
  template <class V>
  SINTER_WORD V apply(V s, const score_place<V>&) const {
    return s;
  }
  template <class V>
  SINTER_WORD V grad(V g, V, V, const score_place<V>&) const {
    return g;
  }
};

/// A formula of scores: apply(s, at), for any kind of value V, with s = scale q . k and at a score_place<V>; and
/// grad(g, s, value, at), the gradient g of that value times its derivative by s. -infinity hides a key. It may have
/// keys(batch, head, first, last): a key_range outside of which queries [first, last) see nothing; blocks of keys
/// outside of it are left out.
template <class S>
concept is_score = sinter::detail::has_apply<S> && sinter::detail::has_grad<S>;
static_assert(is_score<plain_score>);

}  // namespace ops
}  // namespace sinter
