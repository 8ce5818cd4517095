// sinter/math/packet_trigonometry.hpp: sine, cosine and tangent of simd.
#pragma once

#include "sinter/math/packet_functions.hpp"
#include "sinter/math/packet_masks.hpp"
#include "sinter/math/packet_operators.hpp"

namespace sinter::math {

namespace detail {

// x = q pi/2 + r, |r| <= pi/4.
template <int L>
struct quarter_turns {
  ints<L> q;
  floats<L> r;
};

// Beyond it, and for NaN, the scalar word answers.
inline constexpr float trigonometric_limit = 1e6f;

// In double: pi/2 = high + low with high of 33 bits, so that q high is exact for |q| < 2^20.
template <int L>
SINTER_INLINE quarter_turns<L> reduce_by_quarter_turn(floats<L> x) {
  using D = simd<double, L>;
  constexpr double round52 = 0x1.8p52;
  const D d = cast<double>(x);
  const D shifted = fma(d, D(0x1.45f306dc9c883p-1), D(round52));
  const D n = shifted - round52;
  const D r = fma(n, D(-0x1.0b4611a626331p-34), fma(n, D(-0x1.921fb544p+0), d));
  return {cast<std::int32_t>(bit_cast<std::int64_t>(shifted)), cast<float>(r)};
}

// Both to 2^-28 and 2^-33 of the value, |r| <= pi/4.
template <int L>
SINTER_INLINE floats<L> sin_small(floats<L> r) {
  const auto z = r * r;
  const auto s = fma(polynomial(z, -0x1.555546p-3, 0x1.110730p-7, -0x1.994062p-13), z * r, r);
  return select(r == 0.f, r, s);  // keeps -0
}
template <int L>
SINTER_INLINE floats<L> cos_small(floats<L> r) {
  const auto z = r * r;
  return fma(polynomial(z, 0x1.55554ap-5, -0x1.6c0c28p-10, 0x1.99e86ap-16), z * z,
             fma(z, floats<L>(-0.5f), floats<L>(1.f)));
}

// sin(q pi/2 + r).
template <int L>
SINTER_INLINE floats<L> sin_of(ints<L> q, floats<L> r) {
  const auto value = select((q & ints<L>(1)) == std::int32_t(0), sin_small(r), cos_small(r));
  return bit_cast<float>(bit_cast<std::int32_t>(value) ^ shift_left<30>(q & ints<L>(2)));
}

template <int L>
SINTER_INLINE floats<L> tan_of(ints<L> q, floats<L> r) {
  const auto even = (q & ints<L>(1)) == std::int32_t(0);
  const auto s = sin_small(r), c = cos_small(r);
  return select(even, s, -c) / select(even, c, s);
}

}  // namespace detail

// Lanes out of range are replaced one by one, so that a result never depends on the other lanes.
#define SINTER_TRIGONOMETRIC(word, formula)                                                             \
  template <class T, int L>                                                                             \
  SINTER_INLINE simd<T, L> word(simd<T, L> x) {                                                         \
    const auto by_lane = [&] { return detail::each_lane<T, L>([](T a) { return math::word(a); }, x); }; \
    if constexpr (std::is_same_v<T, float>) {                                                           \
      const auto beyond = logical_not(abs(x) <= detail::trigonometric_limit);                           \
      const auto [q, r] = detail::reduce_by_quarter_turn(select(beyond, simd<T, L>(0), x));             \
      const auto result = formula;                                                                      \
      return any(beyond) ? select(beyond, by_lane(), result) : result;                                  \
    } else {                                                                                            \
      return by_lane();                                                                                 \
    }                                                                                                   \
  }
SINTER_TRIGONOMETRIC(sin, detail::sin_of(q, r))
SINTER_TRIGONOMETRIC(cos, detail::sin_of(q + std::int32_t(1), r))
SINTER_TRIGONOMETRIC(tan, detail::tan_of(q, r))
#undef SINTER_TRIGONOMETRIC

}  // namespace sinter::math
