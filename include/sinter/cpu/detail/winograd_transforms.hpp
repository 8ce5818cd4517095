// sinter/cpu/detail/winograd_transforms.hpp: the transforms of Winograd's convolutions, in registers along the
// channels.
//
// A line of `tile` results of a convolution with `taps` weights reads points = tile + taps - 1 elements. It takes one
// multiplication per point instead of one per result and tap (S. Winograd 1980; A. Lavin, S. Gray 2016, "Fast
// algorithms for convolutional neural networks"):
//
//     y = A' ((G w) (B' x)),   A' (tile, points), G (points, taps), B' (points, points),
//
// the product in brackets point by point; in two dimensions each matrix is applied from both sides. Point i stands for
// a place p of a polynomial: row i of G is (1, p, p^2, ...) / n with n the product of the differences to the other
// places, column i of A' is (1, p, p^2, ...), and row i of B' has the coefficients of the product of all (t - q), q the
// other places. The last point is infinity. Six points are 0, +-sqrt(2), +-sqrt(1/2): their powers are half as far
// apart as those of 0, +-1, +-2, and the errors a third. Four are 0, 1, -1.
#pragma once

#include <algorithm>

#include "sinter/cpu/detail/conv_patches.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// How a convolution is cut: tiles of tile x tile results. No tile: not at all.
struct winograd_cut {
  int tile = 0, taps = 0;
  constexpr int points() const { return tile + taps - 1; }
  constexpr explicit operator bool() const { return tile > 0; }
};

inline constexpr double sqrt2 = 1.41421356237309504880;

/// sum + factor * x.
template <class Packet>
SINTER_IN_KERNEL Packet add_scaled(const Packet& sum, double factor, const Packet& x) {
  using T = typename Eigen::internal::unpacket_traits<Packet>::type;
  return Eigen::internal::pmadd(Eigen::internal::pset1<Packet>(static_cast<T>(factor)), x, sum);
}

template <class Packet>
SINTER_IN_KERNEL Packet scaled(double factor, const Packet& x) {
  using T = typename Eigen::internal::unpacket_traits<Packet>::type;
  return Eigen::internal::pmul(Eigen::internal::pset1<Packet>(static_cast<T>(factor)), x);
}

// The maps below read element i by load(i) and hand over result i by store(i, value).

/// B': a line of the image to its points.
template <int Points>
struct image_to_points;

template <>
struct image_to_points<6> {
  static constexpr int in = 6, out = 6;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    using Eigen::internal::padd;
    const auto d1 = load(1), d2 = load(2), d3 = load(3), d4 = load(4);
    store(0, add_scaled(padd(load(0), d4), -2.5, d2));
    const auto even = add_scaled(d4, -0.5, d2), odd = add_scaled(d3, -0.5, d1);
    store(1, add_scaled(even, sqrt2, odd));
    store(2, add_scaled(even, -sqrt2, odd));
    const auto even_half = add_scaled(d4, -2, d2), odd_half = add_scaled(d3, -2, d1);
    store(3, add_scaled(even_half, sqrt2 / 2, odd_half));
    store(4, add_scaled(even_half, -sqrt2 / 2, odd_half));
    store(5, add_scaled(padd(d1, load(5)), -2.5, d3));
  }
};

template <>
struct image_to_points<4> {
  static constexpr int in = 4, out = 4;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    using Eigen::internal::padd;
    using Eigen::internal::psub;
    const auto d1 = load(1), d2 = load(2);
    store(0, psub(load(0), d2));
    store(1, padd(d1, d2));
    store(2, psub(d2, d1));
    store(3, psub(load(3), d1));
  }
};

/// A': points to a line of results.
template <int Points, int Tile>
struct points_to_results {
  static_assert((Points == 6 && (Tile == 4 || Tile == 2)) || (Points == 4 && Tile == 2));
  static constexpr int in = Points, out = Tile;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    using Eigen::internal::padd;
    using Eigen::internal::psub;
    const auto p1 = load(1), p2 = load(2);
    const auto sum = padd(p1, p2), difference = psub(p1, p2);
    if constexpr (Points == 4) {
      store(0, padd(load(0), sum));
      store(1, padd(load(3), difference));
    } else {
      const auto p3 = load(3), p4 = load(4);
      const auto sum_half = padd(p3, p4), difference_half = psub(p3, p4);
      store(0, padd(load(0), padd(sum, sum_half)));
      const auto first = add_scaled(scaled(sqrt2, difference), sqrt2 / 2, difference_half);
      if constexpr (Tile == 2) {
        store(1, padd(first, load(5)));
      } else {
        store(1, first);
        store(2, add_scaled(scaled(2, sum), 0.5, sum_half));
        store(3, padd(load(5), add_scaled(scaled(2 * sqrt2, difference), sqrt2 / 4, difference_half)));
      }
    }
  }
};

/// A: gradients of a line of results to points.
template <int Points, int Tile>
struct results_to_points {
  static_assert(Points == 6 && (Tile == 4 || Tile == 2));
  static constexpr int in = Tile, out = Points;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    const auto d0 = load(0), d1 = load(1);
    store(0, d0);
    auto even = d0, odd = d1, even_half = d0, odd_half = d1;
    if constexpr (Tile == 4) {
      const auto d2 = load(2), d3 = load(3);
      even = add_scaled(d0, 2, d2);
      odd = add_scaled(d1, 2, d3);
      even_half = add_scaled(d0, 0.5, d2);
      odd_half = add_scaled(d1, 0.5, d3);
      store(5, d3);
    } else {
      store(5, d1);
    }
    store(1, add_scaled(even, sqrt2, odd));
    store(2, add_scaled(even, -sqrt2, odd));
    store(3, add_scaled(even_half, sqrt2 / 2, odd_half));
    store(4, add_scaled(even_half, -sqrt2 / 2, odd_half));
  }
};

/// G: weights to points.
template <int Points, int Taps>
struct taps_to_points {
  static_assert((Points == 6 && (Taps == 3 || Taps == 5)) || (Points == 4 && Taps == 3));
  static constexpr int in = Taps, out = Points;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    const auto w0 = load(0), w1 = load(1), w2 = load(2);
    store(0, w0);
    if constexpr (Points == 4) {
      const auto even = add_scaled(scaled(0.5, w0), 0.5, w2);
      store(1, add_scaled(even, 0.5, w1));
      store(2, add_scaled(even, -0.5, w1));
      store(3, w2);
    } else {
      auto even = add_scaled(scaled(1. / 6, w0), 1. / 3, w2), odd = w1;
      auto even_half = add_scaled(scaled(-2. / 3, w0), -1. / 3, w2), odd_half = w1;
      if constexpr (Taps == 5) {
        const auto w3 = load(3), w4 = load(4);
        even = add_scaled(even, 2. / 3, w4);
        odd = add_scaled(w1, 2, w3);
        even_half = add_scaled(even_half, -1. / 6, w4);
        odd_half = add_scaled(w1, 0.5, w3);
        store(5, w4);
      } else {
        store(5, w2);
      }
      store(1, add_scaled(even, sqrt2 / 6, odd));
      store(2, add_scaled(even, -sqrt2 / 6, odd));
      store(3, add_scaled(even_half, -sqrt2 / 3, odd_half));
      store(4, add_scaled(even_half, sqrt2 / 3, odd_half));
    }
  }
};

/// G transposed: gradients of points to those of weights.
template <int Points, int Taps>
struct points_to_taps {
  static_assert(Points == 6 && (Taps == 3 || Taps == 5));
  static constexpr int in = Points, out = Taps;
  template <class Load, class Store>
  static SINTER_IN_KERNEL void apply(const Load& load, const Store& store) {
    using Eigen::internal::padd;
    using Eigen::internal::psub;
    const auto p1 = load(1), p2 = load(2), p3 = load(3), p4 = load(4);
    const auto sum = padd(p1, p2), difference = psub(p1, p2);
    const auto sum_half = padd(p3, p4), difference_half = psub(p3, p4);
    store(0, add_scaled(add_scaled(load(0), 1. / 6, sum), -2. / 3, sum_half));
    store(1, add_scaled(scaled(sqrt2 / 6, difference), -sqrt2 / 3, difference_half));
    const auto second = scaled(1. / 3, psub(sum, sum_half));
    if constexpr (Taps == 3) {
      store(2, padd(second, load(5)));
    } else {
      store(2, second);
      store(3, add_scaled(scaled(sqrt2 / 3, difference), -sqrt2 / 6, difference_half));
      store(4, add_scaled(add_scaled(load(5), 2. / 3, sum), -1. / 6, sum_half));
    }
  }
};

/// A map applied to the columns of a square of packets, and then to the rows.
template <class T, class Map, class Load, class Store>
SINTER_IN_KERNEL void apply_twice(const Load& load, const Store& store) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  alignas(64) T columns[std::size_t{Map::out * Map::in * lanes}];
  for (int j = 0; j < Map::in; ++j)
    Map::apply([&](int i) SINTER_LAMBDA_IN_KERNEL { return load(i, j); },
               [&](int i, const packet& value)
                   SINTER_LAMBDA_IN_KERNEL { ei::pstore(columns + (i * Map::in + j) * lanes, value); });
  for (int i = 0; i < Map::out; ++i)
    Map::apply([&](int j) SINTER_LAMBDA_IN_KERNEL { return ei::pload<packet>(columns + (i * Map::in + j) * lanes); },
               [&](int j, const packet& value) SINTER_LAMBDA_IN_KERNEL { store(i, j, value); });
}

/// A square of pixels whose lines are `line` elements apart and whose pixels are `step`.
template <class T>
struct pixel_square {
  T* data;
  index_t line, step;
};

/// The points (i, j) of a square, at to + (i * out + j) * point_stride, for at least a packet of channels.
template <class T, class Map>
SINTER_KERNEL void square_to_points(const pixel_square<const T>& from, index_t channels, T* to, index_t point_stride) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr index_t lanes = tile_shape<T>::lanes;
  for (index_t c = 0; c < channels; c += lanes) {
    const index_t begin = c + lanes <= channels ? c : channels - lanes;  // some channels of the last packet again
    const T* const x = from.data + begin;
    T* const v = to + begin;
    apply_twice<T, Map>([&](int i, int j)
                            SINTER_LAMBDA_IN_KERNEL { return ei::ploadu<packet>(x + i * from.line + j * from.step); },
                        [&](int i, int j, const packet& value)
                            SINTER_LAMBDA_IN_KERNEL { ei::pstoreu(v + (i * Map::out + j) * point_stride, value); });
  }
}
template <class T>
using to_points_function = void (*)(const pixel_square<const T>&, index_t channels, T* to, index_t point_stride);

/// Adds the sums over `extent` x `extent` pixels to `sums`.
template <class T>
void add_pixels(const pixel_square<const T>& from, int extent, index_t channels, T* sums) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr index_t lanes = tile_shape<T>::lanes;
  index_t c = 0;
  const auto add = [&](auto sum, const auto& load, const auto& plus) {
    for (int i = 0; i < extent; ++i)
      for (int j = 0; j < extent; ++j) sum = plus(sum, load(from.data + i * from.line + j * from.step + c));
    return sum;
  };
  for (; c + lanes <= channels; c += lanes) {
    const packet sum = add(
        ei::pset1<packet>(T(0)), [](const T* x) { return ei::ploadu<packet>(x); },
        [](const packet& a, const packet& b) { return ei::padd(a, b); });
    ei::pstoreu(sums + c, ei::padd(ei::ploadu<packet>(sums + c), sum));
  }
  for (; c < channels; ++c) sums[c] += add(T(0), [](const T* x) { return *x; }, [](T a, T b) { return a + b; });
}

/// Results from the points (i, j) at from + (i * in + j) * point_stride: `columns` of them for each pixel, of which
/// there are rows x width. `bias` and the points are readable up to whole packets.
template <class T, class Map>
SINTER_KERNEL void points_to_square(const T* from, index_t point_stride, index_t columns, const T* bias,
                                    const pixel_square<T>& to, index_t rows, index_t width, bool add) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr index_t lanes = tile_shape<T>::lanes;
  alignas(64) T beside[std::size_t{Map::out * Map::out * lanes}];
  for (index_t c = 0; c < columns; c += lanes) {
    const index_t valid = smaller(columns - c, lanes);
    const bool in_place = valid == lanes && rows == Map::out && width == Map::out;
    const pixel_square<T> y =
        in_place ? pixel_square<T>{to.data + c, to.line, to.step} : pixel_square<T>{beside, Map::out * lanes, lanes};
    const bool adds = add && in_place;
    const packet shift = ei::ploadu<packet>(bias + c);
    apply_twice<T, Map>(
        [&](int i, int j)
            SINTER_LAMBDA_IN_KERNEL { return ei::ploadu<packet>(from + (i * Map::in + j) * point_stride + c); },
        [&](int i, int j, const packet& value) SINTER_LAMBDA_IN_KERNEL {
          T* const pixel = y.data + i * y.line + j * y.step;
          packet result = ei::padd(value, shift);
          if (adds) result = ei::padd(result, ei::ploadu<packet>(pixel));
          ei::pstoreu(pixel, result);
        });
    if (in_place) continue;
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < width; ++j) {
        T* const pixel = to.data + i * to.line + j * to.step + c;
        const T* const value = beside + i * y.line + j * y.step;
        if (add) add_elements(pixel, value, valid);
        else copy_elements(pixel, value, valid);
      }
  }
}
template <class T>
using to_results_function = void (*)(const T* from, index_t point_stride, index_t columns, const T* bias,
                                     const pixel_square<T>& to, index_t rows, index_t width, bool add);

/// The square of `extent` pixels a side whose first is (row, column) of an image of `rows` x `columns`: in the image,
/// or a copy with zeros around it in `memory`, which has room for the channels of all pixels.
template <class T>
pixel_square<const T> square_of(const pixel_square<const T>& image, index_t rows, index_t columns, index_t row,
                                index_t column, int extent, index_t channels, T* memory) {
  const auto pixel = [&](index_t i, index_t j) { return image.data + i * image.line + j * image.step; };
  if (row >= 0 && column >= 0 && row + extent <= rows && column + extent <= columns)
    return {pixel(row, column), image.line, image.step};
  const index_t left = std::clamp(-column, index_t{0}, index_t{extent});
  const index_t right = std::clamp(columns - column, left, index_t{extent});
  T* to = memory;
  for (index_t i = row; i < row + extent; ++i, to += extent * channels) {
    if (i < 0 || i >= rows || left == right) {
      std::fill_n(to, extent * channels, T(0));
      continue;
    }
    std::fill_n(to, left * channels, T(0));
    const index_t run = image.step == channels ? right - left : 1;  // pixels that lie side by side
    for (index_t j = left; j < right; j += run) copy_elements(to + j * channels, pixel(i, column + j), run * channels);
    std::fill_n(to + right * channels, (extent - right) * channels, T(0));
  }
  return {memory, extent * channels, channels};
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
