// sinter/ops/attention_score.hpp: what a score of attention is made into before the softmax, as a formula.
#pragma once

#include <limits>

#include "sinter/core/types.hpp"
#include "sinter/expr/op_members.hpp"
#include "sinter/ops/slope.hpp"

namespace sinter {

/// Where scores stand: those of one query with neighbouring keys. V is the kind of value of the formula.
template <class V>
struct score_place {
  index_t batch, head;             ///< of the query
  index_t query_index, key_index;  ///< of the query, and of the first of the keys
  V query, key;                    ///< the same as values, a key in each lane

  /// The score s where `seen` holds; other keys are hidden from the query.
  template <class M, class S>
  SINTER_WORD S only_where(M seen, S s) const {
    return math::select(seen, s, math::constant<V>(-std::numeric_limits<math::element_t<V>>::infinity()));
  }
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
/// outside of it are left out; and require_fit(extents), which throws where it does not fit the operands. On GPUs it is
/// a trivially copyable struct outside of functions, whose keys() is constexpr.
template <class S>
concept is_score = sinter::detail::has_apply<S> && sinter::detail::has_grad<S>;

/// f(s, at), a function of any kind of value, and its derivative.
template <class F>
struct function_score {
  F f;

  template <class V>
  SINTER_WORD V apply(V s, const score_place<V>& at) const {
    return f(s, at);
  }
  template <class V>
  SINTER_WORD V grad(V g, V s, V, const score_place<V>& at) const {
    const auto y = f(math::sloped<V>{s, V(1)}, at);
    if constexpr (math::detail::is_sloped<std::remove_cv_t<decltype(y)>>) return g * y.slope;
    else return g * V(0);
  }
};

}  // namespace ops

/// A score for attention: query i sees keys from i + offset - before to i + offset, as if there were no others; blocks
/// of keys outside cost nothing. `offset` is the number of keys minus that of queries. I. Beltagy et al., "Longformer",
/// 2020.
///
///     variable y = attention(q, k, v, sliding_window(255));
struct sliding_window : ops::plain_score {
  index_t before = 0, offset = 0;
  constexpr explicit sliding_window(index_t keys_before, index_t first_key = 0)
      : before(keys_before), offset(first_key) {}
  SINTER_WORD key_range keys(index_t, index_t, index_t first, index_t last) const {
    const index_t begin = first + offset - before;
    return {begin > 0 ? begin : 0, last + offset};
  }
};

namespace detail {

/// S as an op holds it.
template <class S>
struct score_type;
template <class S>
  requires ops::is_score<S>
struct score_type<S> {
  using type = S;
  static const S& of(const S& s) { return s; }
};
template <class S>
  requires(!ops::is_score<S> && std::is_invocable_v<const S&, float, const score_place<float>&>)
struct score_type<S> {
  using type = ops::function_score<S>;
  static type of(const S& s) { return {s}; }
};
template <class S>
concept score_formula = requires { typename score_type<S>::type; };

}  // namespace detail
}  // namespace sinter
