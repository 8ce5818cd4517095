// tests/math/ulp.hpp: distance in units in the last place, and the points at which words are tried.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "../catch.hpp"
#include "sinter/math/packet.hpp"

namespace sinter_test {

// |got - want| in units of T's last place at `want`; 0 for two NaNs or equal infinities, 1e9 for what no rounding
// explains. The sign of a zero counts.
template <class T>
double ulps(T got, long double want) {
  using limits = std::numeric_limits<T>;
  const T rounded = static_cast<T>(want);
  if (want != want) return got != got ? 0 : 1e9;
  if (got != got) return 1e9;
  if (std::isinf(rounded) && got == std::copysign(limits::max(), rounded)) return 1;
  if (std::isinf(got) && rounded == std::copysign(limits::max(), got)) return 1;
  if (std::isinf(rounded) || std::isinf(got)) return rounded == got ? 0 : 1e9;
  if (want == 0) return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : 1e9;
  int exponent = 0;
  std::frexp(want, &exponent);
  if (exponent < limits::min_exponent) exponent = limits::min_exponent;
  return static_cast<double>(std::fabs(got - want) / std::ldexp(1.0L, exponent - limits::digits));
}

template <class T>
std::vector<T> special_values() {
  using limits = std::numeric_limits<T>;
  std::vector<T> values{0,
                        1,
                        2,
                        3,
                        T(0.5),
                        T(0.1),
                        10,
                        T(88.72283),
                        87,
                        T(89),
                        104,
                        T(1e4),
                        T(709.5),
                        limits::max(),
                        limits::min(),
                        limits::denorm_min(),
                        limits::epsilon(),
                        limits::infinity()};
  const std::size_t n = values.size();
  for (std::size_t i = 0; i < n; ++i) values.push_back(-values[i]);
  values.push_back(limits::quiet_NaN());
  return values;
}

// The specials, and floats of every exponent and sign: each `stride`-th bit pattern.
inline std::vector<float> float_points(std::uint32_t stride = 40009) {
  auto points = special_values<float>();
  for (std::uint64_t bits = 0; bits < (std::uint64_t(1) << 32); bits += stride) {
    const auto pattern = static_cast<std::uint32_t>(bits);
    float x;
    std::memcpy(&x, &pattern, sizeof(x));
    points.push_back(x);
  }
  return points;
}

template <class T>
struct worst {
  double ulps = 0;
  T at = 0, got = 0;
};

// The worst lane of word(simd<T, L>) against reference(x) over the points, each tried in every position it falls into.
template <int L, class T, class Word, class Reference>
worst<T> worst_of(const std::vector<T>& points, Word word, Reference reference) {
  worst<T> found;
  for (std::size_t first = 0; first < points.size(); first += L) {
    const auto n = static_cast<int>(std::min<std::size_t>(L, points.size() - first));
    const auto x = sinter::math::simd<T, L>::load_partial(points.data() + first, n);
    T got[std::size_t{L}];
    word(x).store(got);
    for (int i = 0; i < n; ++i) {
      const T at = points[first + static_cast<std::size_t>(i)];
      const double error = ulps(got[i], static_cast<long double>(reference(at)));
      if (error > found.ulps) found = {error, at, got[i]};
    }
  }
  return found;
}

}  // namespace sinter_test
