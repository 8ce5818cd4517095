// sinter/math/packet_operators.hpp: operators, comparisons, arithmetic, rounding and horizontal words of simd.
#pragma once

#include <concepts>

#include "sinter/math/packet_cast.hpp"
#include "sinter/math/packet_registers.hpp"
#include "sinter/math/packet_target.hpp"

namespace sinter::math {

namespace detail {

template <class T>
inline constexpr bool signed_lanes = std::is_integral_v<T> && std::is_signed_v<T>;

// Signed integers wrap: computed as unsigned.
#define SINTER_LANE_ARITHMETIC(name, op)                                              \
  struct name {                                                                       \
    template <class T, int L>                                                         \
    SINTER_INLINE static auto run(const vector_t<T, L>& a, const vector_t<T, L>& b) { \
      if constexpr (signed_lanes<T>) {                                                \
        using U = vector_t<std::make_unsigned_t<T>, L>;                               \
        return (vector_t<T, L>)((U)a op(U) b);                                        \
      } else {                                                                        \
        return a op b;                                                                \
      }                                                                               \
    }                                                                                 \
  };
SINTER_LANE_ARITHMETIC(lane_add, +)
SINTER_LANE_ARITHMETIC(lane_sub, -)
SINTER_LANE_ARITHMETIC(lane_mul, *)
#undef SINTER_LANE_ARITHMETIC

#define SINTER_LANE_BINARY(name, op)                                                  \
  struct name {                                                                       \
    template <class T, int L>                                                         \
    SINTER_INLINE static auto run(const vector_t<T, L>& a, const vector_t<T, L>& b) { \
      return a op b;                                                                  \
    }                                                                                 \
  };
SINTER_LANE_BINARY(lane_div, /)
SINTER_LANE_BINARY(lane_mod, %)
SINTER_LANE_BINARY(lane_and, &)
SINTER_LANE_BINARY(lane_or, |)
SINTER_LANE_BINARY(lane_xor, ^)
SINTER_LANE_BINARY(lane_shift_left, <<)
SINTER_LANE_BINARY(lane_shift_right, >>)
SINTER_LANE_BINARY(lane_lt, <)
SINTER_LANE_BINARY(lane_le, <=)
SINTER_LANE_BINARY(lane_gt, >)
SINTER_LANE_BINARY(lane_ge, >=)
SINTER_LANE_BINARY(lane_eq, ==)
SINTER_LANE_BINARY(lane_ne, !=)
#undef SINTER_LANE_BINARY

struct lane_neg {
  template <class T, int L>
  SINTER_INLINE static auto run(const vector_t<T, L>& a) {
    return -a;
  }
};
struct lane_not {
  template <class T, int L>
  SINTER_INLINE static auto run(const vector_t<T, L>& a) {
    return ~a;
  }
};
template <int N>
struct lane_shl {
  template <class T, int L>
  SINTER_INLINE static auto run(const vector_t<T, L>& a) {
    return a << N;
  }
};
template <int N>
struct lane_shr {
  template <class T, int L>
  SINTER_INLINE static auto run(const vector_t<T, L>& a) {
    return a >> N;
  }
};
// Where a value is one register, these and the operators below go to it at once: each function between them is one more
// to inline, for the compiler, at each operator of each formula.
template <class Op, class T, int L, class... V>
SINTER_INLINE simd<T, L> lanewise(const simd<T, L>& a, const V&... b) {
  using R = typename simd<T, L>::registers;
  if constexpr (R::single) return simd<T, L>(R{(decltype(R::v))Op::template run<lane_t<T>, L>(a.r.v, b.r.v...)});
  else return simd<T, L>(map<Op, R>(a.r, b.r...));
}
template <class To, class V>
SINTER_INLINE To one_register(V v) {
  using R = typename To::registers;
  return To(R{(decltype(R::v))v});
}
template <class Op, class T, int L>
SINTER_INLINE mask<T, L> compare(const simd<T, L>& a, const simd<T, L>& b) {
  return mask<T, L>(map<Op, typename mask<T, L>::registers>(a.r, b.r));
}

template <class T, int L>
struct lane_array {
  T lane[std::size_t{L}];
};
template <class T, int L>
SINTER_INLINE lane_array<T, L> lanes_of(const simd<T, L>& v) {
  lane_array<T, L> array;
  v.store(array.lane);
  return array;
}
template <class T, int L, class F, class... A>
SINTER_INLINE simd<T, L> each_of(F f, const A&... array) {
  T result[std::size_t{L}];
  for (int i = 0; i < L; ++i) result[i] = f(array.lane[i]...);
  return simd<T, L>::load(result);
}

// The scalar word f, lane by lane.
template <class T, int L, class F, class... V>
SINTER_INLINE simd<T, L> each_lane(F f, const V&... v) {
  return each_of<T, L>(f, lanes_of(v)...);
}

}  // namespace detail

// bool: + is or, - is exclusive or, * and / are and, as the language's arithmetic converted back to bool.
#define SINTER_OPERATOR(op, number_lanes, bool_lanes)                                                    \
  template <class T, int L>                                                                              \
  SINTER_INLINE simd<T, L> operator op(simd<T, L> a, simd<T, L> b) {                                     \
    if constexpr (simd<T, L>::is_real_register) return detail::one_register<simd<T, L>>(a.r.v op b.r.v); \
    else if constexpr (std::is_same_v<T, bool>) return detail::lanewise<detail::bool_lanes>(a, b);       \
    else return detail::lanewise<detail::number_lanes>(a, b);                                            \
  }
SINTER_OPERATOR(+, lane_add, lane_or)
SINTER_OPERATOR(-, lane_sub, lane_xor)
SINTER_OPERATOR(*, lane_mul, lane_and)
#undef SINTER_OPERATOR

template <class T, int L>
SINTER_INLINE simd<T, L> operator/(simd<T, L> a, simd<T, L> b) {
  return divide(a, b);
}

#define SINTER_INTEGER_OPERATOR(op, lanes)                           \
  template <std::integral T, int L>                                  \
  SINTER_INLINE simd<T, L> operator op(simd<T, L> a, simd<T, L> b) { \
    return detail::lanewise<detail::lanes>(a, b);                    \
  }
SINTER_INTEGER_OPERATOR(&, lane_and)
SINTER_INTEGER_OPERATOR(|, lane_or)
SINTER_INTEGER_OPERATOR(^, lane_xor)
#undef SINTER_INTEGER_OPERATOR

template <integer T, int L>
SINTER_INLINE simd<T, L> operator~(simd<T, L> a) {
  return detail::lanewise<detail::lane_not>(a);
}

// a shifted by b, 0 <= b < bits of T; a right shift of signed lanes keeps the sign.
template <integer T, int L>
SINTER_INLINE simd<T, L> operator<<(simd<T, L> a, simd<T, L> b) {
  return detail::lanewise<detail::lane_shift_left>(a, b);
}
template <integer T, int L>
SINTER_INLINE simd<T, L> operator>>(simd<T, L> a, simd<T, L> b) {
  return detail::lanewise<detail::lane_shift_right>(a, b);
}

// x shifted by the constant N; a right shift of signed lanes keeps the sign.
template <int N, integer T, int L>
SINTER_INLINE simd<T, L> shift_left(simd<T, L> a) {
  return detail::lanewise<detail::lane_shl<N>>(a);
}
template <int N, integer T, int L>
SINTER_INLINE simd<T, L> shift_right(simd<T, L> a) {
  return detail::lanewise<detail::lane_shr<N>>(a);
}

template <class T, int L>
SINTER_INLINE simd<T, L> operator-(simd<T, L> a) {
  if constexpr (real<T>) return detail::lanewise<detail::lane_neg>(a);
  else if constexpr (std::is_same_v<T, bool>) return a;
  else return simd<T, L>(0) - a;
}
template <class T, int L>
SINTER_INLINE simd<T, L> neg(simd<T, L> a) {
  return -a;
}

#define SINTER_COMPARISON(op, lanes)                                                                     \
  template <class T, int L>                                                                              \
  SINTER_INLINE mask<T, L> operator op(simd<T, L> a, simd<T, L> b) {                                     \
    if constexpr (simd<T, L>::is_real_register) return detail::one_register<mask<T, L>>(a.r.v op b.r.v); \
    else return detail::compare<detail::lanes>(a, b);                                                    \
  }
SINTER_COMPARISON(<, lane_lt)
SINTER_COMPARISON(<=, lane_le)
SINTER_COMPARISON(>, lane_gt)
SINTER_COMPARISON(>=, lane_ge)
SINTER_COMPARISON(==, lane_eq)
SINTER_COMPARISON(!=, lane_ne)
#undef SINTER_COMPARISON

// A scalar on either side adopts the element type.
#define SINTER_WITH_NUMBER(op)                        \
  template <class T, int L, arithmetic C>             \
  SINTER_INLINE auto operator op(simd<T, L> a, C b) { \
    return a op simd<T, L>(b);                        \
  }                                                   \
  template <class T, int L, arithmetic C>             \
  SINTER_INLINE auto operator op(C a, simd<T, L> b) { \
    return simd<T, L>(a) op b;                        \
  }
SINTER_WITH_NUMBER(+)
SINTER_WITH_NUMBER(-)
SINTER_WITH_NUMBER(*)
SINTER_WITH_NUMBER(/)
SINTER_WITH_NUMBER(<)
SINTER_WITH_NUMBER(<=)
SINTER_WITH_NUMBER(>)
SINTER_WITH_NUMBER(>=)
SINTER_WITH_NUMBER(==)
SINTER_WITH_NUMBER(!=)
#undef SINTER_WITH_NUMBER

template <class T, int L>
SINTER_INLINE mask<T, L> isnan(simd<T, L> x) {
  return x != x;
}
template <class T, int L>
SINTER_INLINE mask<T, L> isinf(simd<T, L> x) {
  if constexpr (real<T>) return abs(x) == std::numeric_limits<T>::infinity();
  else return mask<T, L>(false);
}
template <class T, int L>
SINTER_INLINE mask<T, L> isfinite(simd<T, L> x) {
  if constexpr (real<T>) return abs(x) <= std::numeric_limits<T>::max();
  else return mask<T, L>(true);
}

template <class T, int L>
SINTER_INLINE simd<T, L> abs(simd<T, L> x) {
  if constexpr (real<T>) {
    using I = detail::mask_lane_t<T>;
    return bit_cast<T>(bit_cast<I>(x) & simd<I, L>(std::numeric_limits<I>::max()));
  } else if constexpr (std::is_signed_v<T>) {
    return select(x < T(0), -x, x);
  } else {
    return x;
  }
}

// The magnitude of x with the sign of s.
template <real T, int L>
SINTER_INLINE simd<T, L> copysign(simd<T, L> x, simd<T, L> s) {
  using I = detail::mask_lane_t<T>;
  const simd<I, L> sign(std::numeric_limits<I>::min());
  return bit_cast<T>((bit_cast<I>(s) & sign) | (bit_cast<I>(x) & ~sign));
}

template <class T, int L>
SINTER_INLINE simd<T, L> sign(simd<T, L> x) {
  const simd<T, L> zero(0), one(1);
  auto result = select(x > zero, one, zero);
  if constexpr (std::is_signed_v<T>) result = select(x < zero, -one, result);
  if constexpr (real<T>) result = select(isnan(x), x, result);
  return result;
}

template <class T, int L>
SINTER_INLINE simd<T, L> min(simd<T, L> a, simd<T, L> b) {
  if constexpr (real<T>) return select(isnan(b), b, detail::lanewise<detail::lane_min>(a, b));
  else return select(a < b, a, b);
}
template <class T, int L>
SINTER_INLINE simd<T, L> max(simd<T, L> a, simd<T, L> b) {
  if constexpr (real<T>) return select(isnan(b), b, detail::lanewise<detail::lane_max>(a, b));
  else return select(a > b, a, b);
}

template <class T, int L>
SINTER_INLINE simd<T, L> fma(simd<T, L> a, simd<T, L> b, simd<T, L> c) {
  if constexpr (real<T>) return detail::lanewise<detail::lane_fma>(a, b, c);
  else return a * b + c;
}

template <class T, int L>
SINTER_INLINE simd<T, L> divide(simd<T, L> a, simd<T, L> b) {
  if constexpr (simd<T, L>::is_real_register) {
    return detail::one_register<simd<T, L>>(a.r.v / b.r.v);
  } else if constexpr (real<T>) {
    return detail::lanewise<detail::lane_div>(a, b);
  } else if constexpr (std::is_same_v<T, bool>) {
    return a & b;
  } else {
    const simd<T, L> zero(0), one(1);
    auto safe = select(b == zero, one, b);
    if constexpr (std::is_signed_v<T>) safe = select(b == simd<T, L>(-1), one, safe);
    auto q = detail::lanewise<detail::lane_div>(a, safe);
    if constexpr (std::is_signed_v<T>) q = select(b == simd<T, L>(-1), -a, q);
    return select(b == zero, zero, q);
  }
}

template <class T, int L>
SINTER_INLINE simd<T, L> fmod(simd<T, L> a, simd<T, L> b) {
  return detail::each_lane<T, L>([](T x, T y) { return math::fmod(x, y); }, a, b);
}
template <class T, int L>
SINTER_INLINE simd<T, L> remainder(simd<T, L> a, simd<T, L> b) {
  return detail::each_lane<T, L>([](T x, T y) { return math::remainder(x, y); }, a, b);
}
template <class T, int L>
SINTER_INLINE simd<T, L> reciprocal(simd<T, L> x) {
  return divide(simd<T, L>(1), x);
}

template <class T, int L>
SINTER_INLINE simd<T, L> sqrt(simd<T, L> x) {
  return detail::lanewise<detail::lane_sqrt>(x);
}
template <class T, int L>
SINTER_INLINE simd<T, L> rsqrt(simd<T, L> x) {
  return divide(simd<T, L>(1), sqrt(x));
}

// A zero keeps its sign, which packet code for targets without a rounding instruction loses.
#define SINTER_ROUND(word, lanes)                                                                         \
  template <class T, int L>                                                                               \
  SINTER_INLINE simd<T, L> word(simd<T, L> x) {                                                           \
    if constexpr (real<T> && detail::has_rounding_instruction) return detail::lanewise<detail::lanes>(x); \
    else if constexpr (real<T>) return copysign(detail::lanewise<detail::lanes>(x), x);                   \
    else return x;                                                                                        \
  }
SINTER_ROUND(floor, lane_floor)
SINTER_ROUND(ceil, lane_ceil)
SINTER_ROUND(round, lane_round)
#undef SINTER_ROUND

template <class T, int L>
SINTER_INLINE simd<T, L> trunc(simd<T, L> x) {
  if constexpr (real<T>) return copysign(floor(abs(x)), x);
  else return x;
}

#define SINTER_NUMBER_SECOND(word)                   \
  template <class T, int L, arithmetic C>            \
  SINTER_INLINE simd<T, L> word(simd<T, L> a, C b) { \
    return word(a, simd<T, L>(b));                   \
  }
SINTER_NUMBER_SECOND(min)
SINTER_NUMBER_SECOND(max)
SINTER_NUMBER_SECOND(pow)
SINTER_NUMBER_SECOND(divide)
SINTER_NUMBER_SECOND(fmod)
SINTER_NUMBER_SECOND(remainder)
#undef SINTER_NUMBER_SECOND

namespace detail {

// Pairwise: lane i with lane i + L/2, and so on down to one. The order depends on L only.
template <class F, class T, int L>
SINTER_INLINE T reduce_pairwise(F f, const simd<T, L>& x) {
  if constexpr (L == 1) return x[0];
  else return reduce_pairwise(f, f(simd<T, L / 2>(low_half(x.r)), simd<T, L / 2>(high_half(x.r))));
}

}  // namespace detail

template <class T, int L>
SINTER_INLINE T hsum(simd<T, L> x) {
  return detail::reduce_pairwise([](auto a, auto b) { return a + b; }, x);
}
template <class T, int L>
SINTER_INLINE T hprod(simd<T, L> x) {
  return detail::reduce_pairwise([](auto a, auto b) { return a * b; }, x);
}
template <class T, int L>
SINTER_INLINE T hmin(simd<T, L> x) {
  return detail::reduce_pairwise([](auto a, auto b) { return math::min(a, b); }, x);
}
template <class T, int L>
SINTER_INLINE T hmax(simd<T, L> x) {
  return detail::reduce_pairwise([](auto a, auto b) { return math::max(a, b); }, x);
}

}  // namespace sinter::math
