// sinter/math/vocabulary.hpp: the closed list of words that ops are written in, and the traits of a kind of value.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sinter/core/types.hpp"
#include "sinter/math/inline.hpp"

// An op is written once as `template <class V> V apply(V x)`. V is a *kind of value*: a host or device scalar (words in
// math/scalar.hpp) or `simd<T, L>`, L elements in vector registers (words in math/packet.hpp). Every word of simd is
// declared here, so that a qualified call `math::exp(x)` in an op's header resolves for all kinds whether or not
// math/packet.hpp comes before it.
//
//   operators     unary -, + - * /, < <= > >= == != (giving mask_t<V>), and for integers ~ & | ^
//   arithmetic    abs neg min max sign fma divide fmod remainder reciprocal
//   exponentials  exp exp2 expm1 log log2 log10 log1p sigmoid pow sqrt rsqrt cbrt
//   trigonometry  sin cos tan asin acos atan sinh cosh tanh
//   error         erf erfc
//   bits          copysign, and for integers shift_left<N> shift_right<N>
//   rounding      floor ceil round trunc
//   classes       isnan isinf isfinite
//   masks         select logical_and logical_or logical_xor logical_not any all
//   conversion    cast<To> constant<V> bit_cast<To> rounded<To> (float to what a half or bfloat16 holds of it)
//   horizontal    hsum hprod hmin hmax (on a scalar: the value itself)
//
// Semantics shared by all kinds: min and max propagate NaN (NumPy's minimum, maximum); round is half to even; fmod has
// the sign of the dividend (C), remainder that of the divisor (Python); sign(NaN) is NaN and sign(-0.0) is 0; fma is
// fused where the target has the instruction. `divide` never traps: an integer divided by zero is 0, and so are its
// fmod and remainder; simd's operator / does the same, the operator / of an integer *scalar* is the language's own, so
// ops over integers say `divide`. cast truncates toward zero, clamps to the range of an integer target, maps NaN to 0,
// and to bool means v != 0. A scalar may stand second in min, max, pow, divide, fmod and remainder, and on either
// side of an operator: it adopts the element type.
namespace sinter::math {

template <class T>
concept arithmetic = std::is_arithmetic_v<T>;

template <class T>
concept real = std::is_floating_point_v<T>;

template <class T>
concept integer = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T, int L>
struct simd;

template <class T, int L>
struct mask;

// Left undefined for what is no kind of value, so that the words below drop out for it.
template <class V>
struct kind;

template <arithmetic V>
struct kind<V> {
  using element = V;
  using mask_type = bool;
  template <class U>
  using rebind = U;
  static constexpr int lanes = 1;
};

template <class T, int L>
struct kind<simd<T, L>> {
  using element = T;
  using mask_type = mask<T, L>;
  template <class U>
  using rebind = simd<U, L>;
  static constexpr int lanes = L;
};

template <class T, int L>
struct kind<mask<T, L>> {
  using element = bool;
  using mask_type = mask<T, L>;
  template <class U>
  using rebind = simd<U, L>;
  static constexpr int lanes = L;
};

// The element type of V, how many elements V holds, what comparing two Vs gives, and V with elements of type U.
template <class V>
using element_t = typename kind<V>::element;
template <class V>
inline constexpr int lanes_v = kind<V>::lanes;
template <class V>
using mask_t = typename kind<V>::mask_type;
template <class V, class U>
using rebind_t = typename kind<V>::template rebind<U>;

// V with c, converted to its element type, in every lane.
template <class V, arithmetic C>
SINTER_WORD V constant(C c) {
  return V(static_cast<element_t<V>>(c));
}

#define SINTER_UNARY(word)  \
  template <class T, int L> \
  SINTER_INLINE simd<T, L> word(simd<T, L> x);
#define SINTER_BINARY(word)                                  \
  template <class T, int L>                                  \
  SINTER_INLINE simd<T, L> word(simd<T, L> a, simd<T, L> b); \
  template <class T, int L, arithmetic C>                    \
  SINTER_INLINE simd<T, L> word(simd<T, L> a, C b);
#define SINTER_CLASSIFY(word) \
  template <class T, int L>   \
  SINTER_INLINE mask<T, L> word(simd<T, L> x);
#define SINTER_HORIZONTAL(word) \
  template <class T, int L>     \
  SINTER_INLINE T word(simd<T, L> x);

SINTER_UNARY(abs)
SINTER_UNARY(neg)
SINTER_UNARY(sign)
SINTER_UNARY(reciprocal)
SINTER_UNARY(exp)
SINTER_UNARY(exp2)
SINTER_UNARY(expm1)
SINTER_UNARY(log)
SINTER_UNARY(log2)
SINTER_UNARY(log10)
SINTER_UNARY(log1p)
SINTER_UNARY(sigmoid)
SINTER_UNARY(sqrt)
SINTER_UNARY(rsqrt)
SINTER_UNARY(cbrt)
SINTER_UNARY(sin)
SINTER_UNARY(cos)
SINTER_UNARY(tan)
SINTER_UNARY(asin)
SINTER_UNARY(acos)
SINTER_UNARY(atan)
SINTER_UNARY(sinh)
SINTER_UNARY(cosh)
SINTER_UNARY(tanh)
SINTER_UNARY(erf)
SINTER_UNARY(erfc)
SINTER_UNARY(floor)
SINTER_UNARY(ceil)
SINTER_UNARY(round)
SINTER_UNARY(trunc)
SINTER_BINARY(min)
SINTER_BINARY(max)
SINTER_BINARY(pow)
SINTER_BINARY(divide)
SINTER_BINARY(fmod)
SINTER_BINARY(remainder)
SINTER_CLASSIFY(isnan)
SINTER_CLASSIFY(isinf)
SINTER_CLASSIFY(isfinite)
SINTER_HORIZONTAL(hsum)
SINTER_HORIZONTAL(hprod)
SINTER_HORIZONTAL(hmin)
SINTER_HORIZONTAL(hmax)

#undef SINTER_UNARY
#undef SINTER_BINARY
#undef SINTER_CLASSIFY
#undef SINTER_HORIZONTAL

template <class T, int L>
SINTER_INLINE simd<T, L> fma(simd<T, L> a, simd<T, L> b, simd<T, L> c);

template <real T, int L>
SINTER_INLINE simd<T, L> copysign(simd<T, L> x, simd<T, L> s);
template <int N, integer T, int L>
SINTER_INLINE simd<T, L> shift_left(simd<T, L> a);
template <int N, integer T, int L>
SINTER_INLINE simd<T, L> shift_right(simd<T, L> a);

template <class U, class T, int L>
SINTER_INLINE simd<T, L> select(mask<U, L> m, simd<T, L> a, simd<T, L> b);
template <class T, int L>
SINTER_INLINE simd<T, L> select(simd<bool, L> m, simd<T, L> a, simd<T, L> b);
template <class U, class T, int L>
SINTER_INLINE mask<T, L> select(mask<U, L> m, mask<T, L> a, mask<T, L> b);

namespace detail {
template <class V>
inline constexpr bool is_lanes = false;
template <class T, int L>
inline constexpr bool is_lanes<simd<T, L>> = true;
template <class T, int L>
inline constexpr bool is_lanes<mask<T, L>> = true;
}  // namespace detail

// A mask, or lanes taken as true where they are not 0.
template <class V>
concept lane_condition = detail::is_lanes<V>;

template <lane_condition A, lane_condition B>
SINTER_INLINE mask_t<A> logical_and(A a, B b);
template <lane_condition A, lane_condition B>
SINTER_INLINE mask_t<A> logical_or(A a, B b);
template <lane_condition A, lane_condition B>
SINTER_INLINE mask_t<A> logical_xor(A a, B b);
template <lane_condition A>
SINTER_INLINE mask_t<A> logical_not(A a);
template <lane_condition A>
SINTER_INLINE bool any(A a);
template <lane_condition A>
SINTER_INLINE bool all(A a);

template <class To, class From, int L>
SINTER_INLINE simd<To, L> cast(simd<From, L> x);
template <class To, class From, int L>
SINTER_INLINE simd<To, L> cast(mask<From, L> x);
template <class To, class From, int L>
SINTER_INLINE simd<To, L> bit_cast(simd<From, L> x);
template <narrow_element T, int L>
SINTER_INLINE simd<float, L> rounded(simd<float, L> x);

}  // namespace sinter::math
