// sinter/math/packet_masks.hpp: selection, and the logic of masks.
#pragma once

#include "sinter/math/packet_cast.hpp"
#include "sinter/math/packet_operators.hpp"
#include "sinter/math/packet_registers.hpp"

namespace sinter::math {

namespace detail {

struct lane_select {
  template <class M, int L, class P>
  SINTER_INLINE static P run(const vector_t<M, L>& m, const P& a, const P& b) {
    return m ? a : b;
  }
};

}  // namespace detail

template <class U, class T, int L>
SINTER_INLINE simd<T, L> select(mask<U, L> m, simd<T, L> a, simd<T, L> b) {
  const auto wide = detail::as_mask<T>(m);
  return simd<T, L>(detail::map<detail::lane_select, typename simd<T, L>::registers>(wide.r, a.r, b.r));
}
template <class T, int L>
SINTER_INLINE simd<T, L> select(simd<bool, L> m, simd<T, L> a, simd<T, L> b) {
  return select(detail::as_mask<T>(m), a, b);
}
template <class U, class T, int L>
SINTER_INLINE mask<T, L> select(mask<U, L> m, mask<T, L> a, mask<T, L> b) {
  const auto wide = detail::as_mask<T>(m);
  return mask<T, L>(detail::map<detail::lane_select, typename mask<T, L>::registers>(wide.r, a.r, b.r));
}

// The result is as wide as the first operand.
#define SINTER_LOGICAL(word, lanes)                                                                                   \
  template <lane_condition A, lane_condition B>                                                                       \
  SINTER_INLINE mask_t<A> word(A a, B b) {                                                                            \
    using T = detail::condition_element_t<A>;                                                                         \
    return mask_t<A>(                                                                                                 \
        detail::map<detail::lanes, typename mask_t<A>::registers>(detail::as_mask<T>(a).r, detail::as_mask<T>(b).r)); \
  }
SINTER_LOGICAL(logical_and, lane_and)
SINTER_LOGICAL(logical_or, lane_or)
SINTER_LOGICAL(logical_xor, lane_xor)
#undef SINTER_LOGICAL

template <lane_condition A>
SINTER_INLINE mask_t<A> logical_not(A a) {
  using T = detail::condition_element_t<A>;
  return mask_t<A>(detail::map<detail::lane_not, typename mask_t<A>::registers>(detail::as_mask<T>(a).r));
}

template <lane_condition A>
SINTER_INLINE bool any(A a) {
  const auto m = detail::as_mask<detail::condition_element_t<A>>(a);
  return detail::any_bit(m.r);
}
template <lane_condition A>
SINTER_INLINE bool all(A a) {
  return !any(logical_not(a));
}

}  // namespace sinter::math
