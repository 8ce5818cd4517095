// sinter/cuda/pixels.hpp: where the elements of images lie that have their channels last.
#pragma once

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// Elements i, i + all threads, ... of n.
template <class G, class F>
SINTER_WORD void each_element(const G& g, index_t n, const F& f) {
  for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) f(i);
}

/// Coordinates of an element of (N, a, b, c, C), the channels last.
struct pixel {
  index_t n, at[3], channel;
  SINTER_WORD pixel(index_t i, const index_t (&extent)[3], index_t channels) {
    channel = i % channels;
    i /= channels;
    for (int d = 2; d >= 0; --d) {
      at[d] = i % extent[d];
      i /= extent[d];
    }
    n = i;
  }
};
SINTER_WORD index_t pixel_number(index_t n, const index_t (&at)[3], const index_t (&extent)[3]) {
  return ((n * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
}

template <class T>
SINTER_WORD void put_or_add(T& to, compute_type<T> value, bool add) {
  to = static_cast<T>(add ? static_cast<compute_type<T>>(to) + value : value);
}

/// Takes numbers up to `largest` apart into a quotient, which it returns, and a rest, which they become.
struct splitter {
  index_t divisor = 1;
  divider by;
  bool fits = true;

  constexpr splitter() = default;
  constexpr splitter(index_t d, index_t largest) : divisor(d < 1 ? 1 : d) {
    constexpr index_t limit = index_t{1} << 31;
    fits = divisor < limit && largest < limit;
    if (fits) by = divider(static_cast<std::uint32_t>(divisor));
  }
  SINTER_WORD index_t operator()(index_t& n) const {
    const index_t q = quotient(n, divisor, by, fits);
    n -= q * divisor;
    return q;
  }
};

/// The coordinates of pixel number 0 to `largest`: that of the image and three inside of it.
struct pixel_space {
  splitter by_image, by_plane, by_line;

  constexpr pixel_space() = default;
  constexpr pixel_space(const index_t (&extent)[3], index_t largest)
      : by_image(extent[0] * extent[1] * extent[2], largest),
        by_plane(extent[1] * extent[2], largest),
        by_line(extent[2], largest) {}
  SINTER_WORD void find(index_t number, index_t& image, index_t (&at)[3]) const {
    image = by_image(number);
    at[0] = by_plane(number);
    at[1] = by_line(number);
    at[2] = number;
  }
};

}  // namespace sinter::cuda_impl
