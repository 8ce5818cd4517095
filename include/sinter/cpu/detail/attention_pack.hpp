// sinter/cpu/detail/attention_pack.hpp: from the operands of attention to strips, and from strips to its results.
#pragma once

#include "sinter/cpu/detail/attention_tile.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/math/packet.hpp"
#include "sinter/ops/attention_memory.hpp"

namespace sinter::cpu_impl::detail {

/// Lanes of a vector of the type that attention computes in: a strip holds whole vectors.
template <class C>
inline constexpr int strip_lanes = smaller(math::native_lanes, strip<C>);
template <class C>
using strip_vector = math::simd<C, strip_lanes<C>>;

using ops::heads_of, ops::matrix_of;

/// Elements first, ... of a row of n, up to a vector; zeros behind them.
template <class T>
SINTER_INLINE strip_vector<compute_type<T>> read_some(const T* row, index_t step, index_t first, index_t n) {
  using C = compute_type<T>;
  constexpr int lanes = strip_lanes<C>;
  if (step == 1 && first + lanes <= n) return math::read<lanes>(row + first);
  alignas(64) C some[std::size_t{lanes}] = {};
  for (index_t i = 0; i < lanes && first + i < n; ++i) some[i] = row[(first + i) * step];
  return strip_vector<C>::load(some);
}

/// Finds out whether all values are finite.
template <class C>
struct finite_check {
  strip_vector<C> zero{C(0)};
  SINTER_INLINE void see(strip_vector<C> x) { zero = math::fma(x, strip_vector<C>(C(0)), zero); }
  bool all() const { return math::hsum(zero) == C(0); }
};

/// to = factor from, `rows` of them and zeros up to `padded`. Tells whether all are finite.
template <class T, class C = compute_type<T>>
bool pack_rows(const matrix_of<const T>& from, index_t rows, index_t padded, index_t columns, C factor,
               strips_of<C> to) {
  // Rows of a head lie a row of all heads apart: no processor guesses them.
  constexpr index_t lanes = strip_lanes<C>, rows_ahead = 8;
  const strip_vector<C> scale(factor);
  finite_check<C> watch;
  for (index_t r = 0; r < padded; ++r)
    for (index_t first = 0; first < columns; first += strip<C>) {
      C* const place = to.column(first) + r * strip<C>;
      __builtin_prefetch(from.data + (r + rows_ahead) * from.row + first * from.column);
      for (index_t c = 0; c < strip<C>; c += lanes) {
        strip_vector<C> x(C(0));
        if (r < rows) x = read_some(from.data + r * from.row, from.column, first + c, columns) * scale;
        watch.see(x);
        x.store(place + c);
      }
    }
  return watch.all();
}

/// One strip of the transposed matrix (columns, lines) of strip<C> lines that lie in strips.
template <class C>
void transpose_lines(strips_of<const C> from, index_t columns, C* to) {
  for (index_t first = 0; first < columns; first += strip<C>)
    pack_strip(to + first * strip<C>, strip<C>, strip_source<C>{from.column(first), strip<C>, 1, strip<C>, strip<C>},
               smaller(columns - first, strip<C>));
}

/// A row of strips (+)= the first columns of a row of the result, times a factor.
template <class T, class C = compute_type<T>>
void write_row(const C* from, index_t step, C factor, T* to, index_t to_step, index_t columns, bool add) {
  constexpr index_t lanes = strip_lanes<C>;
  const strip_vector<C> scale(factor);
  for (index_t c = 0; c < columns; c += lanes) {
    strip_vector<C> x = strip_vector<C>::load(from + c / strip<C> * step + c % strip<C>) * scale;
    if (add) x = x + read_some<T>(to, to_step, c, columns);
    if (to_step == 1 && c + lanes <= columns) {
      math::write(to + c, x);
    } else {
      alignas(64) C some[std::size_t{lanes}];
      x.store(some);
      for (index_t i = 0; i < lanes && c + i < columns; ++i) to[(c + i) * to_step] = static_cast<T>(some[i]);
    }
  }
}
template <class T, class C = compute_type<T>>
void write_rows(strips_of<const C> from, C factor, const matrix_of<T>& to, index_t rows, index_t columns, bool add) {
  for (index_t r = 0; r < rows; ++r)
    write_row(from.row(r), from.step, factor, to.data + r * to.row, to.column, columns, add);
}

}  // namespace sinter::cpu_impl::detail
