// sinter/cpu/detail/attention_tile.hpp: the products of attention, tiles of matrices that lie in strips of columns.
//
// A matrix (rows, columns) in strips: element (r, c) lies at (c / W * rows + r) * W + c % W, where W, `strip`, is the
// width of a tile. A strip is what a tile reads of its right side; the left side is read by rows, as scores are that
// meet values, or by columns, as those of a transposed matrix. So scores are written once and read as they lie by every
// product of the backward pass.
#pragma once

#include <utility>

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_args.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

template <class T>
inline constexpr index_t strip = tile_shape<T>::max_columns;

/// Elements of a matrix in strips.
template <class T>
constexpr index_t strips_size(index_t rows, index_t columns) {
  return ceil_div(columns, strip<T>) * strip<T> * rows;
}

/// The rows of a tile whose left side is read by columns: a divisor of `strip`.
template <class T>
inline constexpr int tile_columns = smaller(tile_shape<T>::max_rows >= 14 ? 8 : 4, strip<T>);

/// c(Rows, Packets * lanes) = [c +] a(Rows, k) b(k, Packets * lanes). The rows of b and c lie strip<T> elements apart.
/// ByRow: so do those of a, and its next strip a_step elements behind the first. Otherwise a is the transpose of a
/// matrix in strips, of which one holds all of its rows.
template <class T, int Rows, int Packets, bool ByRow, int... I>
void multiply_strips(index_t k_count, const T* a, index_t a_step, const T* b, T* c, bool add,
                     std::integer_sequence<int, I...> all) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  constexpr index_t w = strip<T>;
  packet sum[std::size_t{Rows * Packets}];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  const auto multiply = [&](int at) SINTER_INLINE_LAMBDA {
    packet right[std::size_t{Packets}];
    for (int p = 0; p < Packets; ++p) {
      right[p] = ei::pload<packet>(b + at * w + p * lanes);
      read_once(right[p]);
    }
    const auto left = [&](int row)
                          SINTER_INLINE_LAMBDA { return ei::pset1<packet>(ByRow ? a[row * w + at] : a[at * w + row]); };
    ((sum[I] = ei::pmadd(left(I / Packets), right[I % Packets], sum[I])), ...);
  };
  while (k_count > 0) {
    const index_t here = ByRow && k_count > w ? w : k_count;
    index_t k = 0;
    for (; k + 2 <= here; k += 2) {
      multiply(0);
      multiply(1);
      a += ByRow ? 2 : 2 * w;
      b += 2 * w;
    }
    if (k < here) {
      multiply(0);
      a += ByRow ? 1 : w;
      b += w;
    }
    if constexpr (ByRow) a += a_step - here;
    k_count -= here;
  }
  store_tile<Packets>(sum, c, w, add, all);
}

template <class T, int Rows, int Packets, bool ByRow>
void strip_tile(index_t k_count, const T* a, index_t a_step, const T* b, T* c, bool add) {
  multiply_strips<T, Rows, Packets, ByRow>(k_count, a, a_step, b, c, add,
                                           std::make_integer_sequence<int, Rows * Packets>{});
}

template <class T>
using strip_function = void (*)(index_t k_count, const T* a, index_t a_step, const T* b, T* c, bool add);

/// The kernels by rows for tiles of an even number of rows and of one packet or two.
template <class T>
strip_function<T> row_tile(index_t rows, bool narrow) {
  return []<int... I>(index_t index, bool one, std::integer_sequence<int, I...>) {
    static constexpr strip_function<T> table[][2] = {
        {&strip_tile<T, 2 * I + 2, 2, true>, &strip_tile<T, 2 * I + 2, 1, true>}...};
    return table[index][one];
  }(rows / 2 - 1, narrow, std::make_integer_sequence<int, tile_shape<T>::max_rows / 2>{});
}

/// A matrix in strips, or part of one: `step` elements lie between two strips.
template <class T>
struct strips_of {
  T* data;
  index_t step;

  T* row(index_t r) const { return data + r * strip<T>; }
  strips_of from_row(index_t r) const { return {row(r), step}; }
  T* column(index_t c) const { return data + c / strip<T> * step + c % strip<T>; }
};

/// c(rows, columns) = [c +] a(rows, k) b(k, columns); rows is even and at most that of a tile. c has room for whole
/// packets.
template <class T>
void multiply_rows(index_t rows, index_t k, index_t columns, strips_of<const T> a, strips_of<const T> b, strips_of<T> c,
                   bool add) {
  for (index_t first = 0; first < columns; first += strip<T>) {
    const bool narrow = columns - first <= tile_shape<T>::lanes;
    row_tile<T>(rows, narrow)(k, a.data, a.step, b.column(first), c.column(first), add);
  }
}

/// c(lines, columns) += a(k, lines)^T b(k, columns) of one strip of a: `lines` is strip<T>. Rows of c are lines.
template <class T>
void multiply_columns(index_t k, index_t columns, const T* a, strips_of<const T> b, strips_of<T> c) {
  constexpr int rows = tile_columns<T>;
  static_assert(strip<T> % rows == 0);
  for (index_t first = 0; first < columns; first += strip<T>) {
    const auto tile =
        columns - first <= tile_shape<T>::lanes ? &strip_tile<T, rows, 1, false> : &strip_tile<T, rows, 2, false>;
    for (index_t line = 0; line < strip<T>; line += rows)
      tile(k, a + line, 0, b.column(first), c.column(first) + line * strip<T>, true);
  }
}

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
