// sinter/cuda/attention_tile.hpp: what all kernels of attention on GPUs share: tiles of scores, what makes them, and
// products with them.
//
// A block of threads owns a tile of queries, or of keys, of a head, and goes over tiles of the others: scores
// (others, owned) into shared memory; what the softmax or its derivative makes of them, in place, where a thread stays
// with one owned row; and the product of that with other rows, into registers. Operands are read a slice of their
// columns or rows at a time, in any strides.
#pragma once

#include <limits>

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/chunk.hpp"
#include "sinter/ops/attention_memory.hpp"
#include "sinter/ops/attention_rule.hpp"

namespace sinter::cuda_impl {

using ops::heads_of, ops::matrix_of;

/// n, or at most `most`.
SINTER_WORD int fewer(index_t n, int most) { return n < most ? static_cast<int>(n) : most; }

/// One of two, member by member: what is chosen by its address would lie in a GPU's memory.
template <class T>
SINTER_WORD matrix_of<T> either(bool first, const matrix_of<T>& a, const matrix_of<T>& b) {
  return {first ? a.data : b.data, first ? a.row : b.row, first ? a.column : b.column};
}

/// A score, what the formula makes of it, and with the mask; -infinity where the query does not see the key.
template <class C>
struct scored {
  C score, formula, value;
};

/// The rule of attention, score by score.
template <class Score, class Dropout, class M>
struct attention_rule : ops::attention_rule<Score, Dropout, M> {
  /// Does a query of [query, last_query) see a key of [key, last_key)?
  SINTER_WORD bool sees(index_t batch, index_t head, index_t query, index_t last_query, index_t key,
                        index_t last_key) const {
    const key_range r = this->keys(batch, head, query, last_query);
    return r.begin < last_key && r.end > key;
  }
  template <class C>
  SINTER_WORD score_place<C> place(const ops::query_place<M>& q, index_t key) const {
    return {q.batch, q.head, q.query, key, static_cast<C>(q.query), static_cast<C>(key)};
  }
  template <class C>
  SINTER_WORD scored<C> make(C s, const ops::query_place<M>& q, index_t key) const {
    const C hidden = -std::numeric_limits<C>::infinity();
    if (key < q.keys.begin || key >= q.keys.end) return {s, hidden, hidden};
    const C formula = this->score.apply(s, place<C>(q, key));
    C value = formula;
    if constexpr (std::is_same_v<M, bool>) {
      if (!q.mask[key * this->mask.key]) value = hidden;
    } else if constexpr (!std::is_void_v<M>) {
      const C added = static_cast<C>(q.mask[key * this->mask.key]);
      value = added == hidden ? hidden : value + added;
    }
    return {s, formula, value};
  }
  /// What a weight is multiplied with.
  template <class C>
  SINTER_WORD C factor(const ops::query_place<M>& q, index_t key) const {
    if constexpr (attention_rule::draws) return this->dropout.template factors<C>(this->number(q, key));
    else return C(1);
  }
};

/// e^x for x <= 0; 0 below e^-87, as on the host.
template <class C>
SINTER_WORD C weight_of(C x) {
  return x < (sizeof(C) == 4 ? C(-87) : C(-708)) ? C(0) : math::exp(x);
}

/// The sizes of tiles, and the products of a block of threads. C: float or double.
template <class C>
struct attention_tiles {
  static constexpr int each = static_cast<int>(16 / sizeof(C));  ///< neighbours that a thread reads at once
  static constexpr int across = 16;                              ///< threads along a side of a tile
  static constexpr int side = across * each;                     ///< owned rows, and others
  static constexpr int step = side + each;  ///< from row to row of a tile in shared memory; spares its banks
  static constexpr int depth = 8 * each;    ///< columns or rows of an operand that are there at a time
  static constexpr int columns = 2 * side;  ///< of the results that a block makes
  static constexpr int area = side * step;  ///< elements of a tile
  static constexpr int parts = block_threads / side, share = side / parts;  ///< threads of an owned row; rows of each
  static_assert(across * across == block_threads && 2 * depth * step == area && depth * columns <= area);

  using few = chunk<C, each>;
  /// What a thread has of a product.
  struct sums {
    C at[std::size_t{each}][std::size_t{each}];
  };

  SINTER_WORD static void clear(sums& s) {
    SINTER_UNROLL
    for (int i = 0; i < each; ++i)
      for (int j = 0; j < each; ++j) s.at[i][j] = C(0);
  }

  /// Columns [0, depth) of rows [0, side), column by column; zeros where there are fewer.
  template <class G, class T>
  SINTER_WORD static void stage_columns(const G& g, C* to, const matrix_of<const T>& from, int rows, int count) {
    constexpr int at_once = block_threads / depth;
    const int c = g.thread() % depth, first = g.thread() / depth;
    constexpr int in_flight = each < 4 ? 2 : 4;
    const T* p = from.data + c * from.column + first * from.row;
    if (c >= count) rows = 0;
    to += c * step;
    for (int r = first; r < side; r += in_flight * at_once) {
      keep_loop(r);
      SINTER_UNROLL
      for (int i = 0; i < in_flight; ++i) {
        to[r + i * at_once] = r + i * at_once < rows ? static_cast<C>(*p) : C(0);
        p += at_once * from.row;
      }
    }
  }
  /// Columns [0, wide) of rows [0, depth), row by row. Tells whether a number is not finite.
  template <class G, class T>
  SINTER_WORD static bool stage_rows(const G& g, C* to, const matrix_of<const T>& from, int rows, int count, int wide) {
    const int c = g.thread() % wide, first = g.thread() / wide, at_once = block_threads / wide;
    const T* p = from.data + c * from.column + first * from.row;
    if (c >= count) rows = 0;
    bool all = true;
    for (int r = first; r < depth; r += at_once) {
      keep_loop(r);
      const C x = r < rows ? static_cast<C>(*p) : C(0);
      p += at_once * from.row;
      all = all && x - x == C(0);
      to[r * columns + c] = x;
    }
    return !all;
  }

  /// tile (others, owned) = sum over n columns of other . owned; `staging` is for that, and `tile` may be the same.
  template <class G, class T>
  SINTER_WORD static void score(const G& g, C* staging, C* tile, const matrix_of<const T>& others, int rows,
                                const matrix_of<const T>& owned, int owned_rows, index_t n) {
    const int down = g.thread() / across * each, right = g.thread() % across * each;
    C* const a = staging;
    C* const b = staging + depth * step;
    sums s;
    clear(s);
    for (index_t c = 0; c < n; c += depth) {
      const int here = fewer(n - c, depth);
      stage_columns(g, a, others.from(0, c), rows, here);
      stage_columns(g, b, owned.from(0, c), owned_rows, here);
      g.sync();
      for (int k = 0; k < here; ++k) {
        keep_loop(k);
        const few x = *reinterpret_cast<const few*>(a + k * step + down),
                  y = *reinterpret_cast<const few*>(b + k * step + right);
        SINTER_UNROLL
        for (int i = 0; i < each; ++i)
          for (int j = 0; j < each; ++j) s.at[i][j] += x.value[i] * y.value[j];
      }
      g.sync();
    }
    SINTER_UNROLL
    for (int i = 0; i < each; ++i) {
      few row;
      for (int j = 0; j < each; ++j) row.value[j] = s.at[i][j];
      *reinterpret_cast<few*>(tile + (down + i) * step + right) = row;
    }
  }

  /// s (owned, columns) += weights (others, owned)^T rows (others, columns), `rows` of them and `n` columns, of which
  /// s[1] has those from `side` on. A number that is not finite meets no weight of 0.
  template <class G, class T>
  SINTER_WORD static void add(const G& g, C* staging, const C* weights, const matrix_of<const T>& from, int rows,
                              index_t n, sums (&s)[2]) {
    const int count = fewer(n, columns);
    const bool both = count > side;
    for (int r = 0; r < rows; r += depth) {
      const bool with_care = g.any(stage_rows(g, staging, from.from(r, 0), rows - r, count, both ? columns : side));
      if (with_care) add_staged<true>(g, staging, weights + r * step, both, s);
      else add_staged<false>(g, staging, weights + r * step, both, s);
      g.sync();
    }
  }

  /// to (owned, columns) = [to +] factor(owned row) s.
  template <class G, class T, class Factor>
  SINTER_WORD static void write(const G& g, const sums (&s)[2], const matrix_of<T>& to, int rows, index_t n, bool adds,
                                const Factor& factor) {
    const int down = g.thread() / across * each, right = g.thread() % across * each;
    SINTER_UNROLL
    for (int i = 0; i < each; ++i) {
      if (down + i >= rows) continue;
      const C f = factor(down + i);
      SINTER_UNROLL
      for (int half = 0; half < 2; ++half)
        for (int j = 0; j < each; ++j) {
          const int c = half * side + right + j;
          if (c >= n) continue;
          T& element = to.data[(down + i) * to.row + c * to.column];
          const C x = s[half].at[i][j] * f;
          element = static_cast<T>(adds ? static_cast<C>(element) + x : x);
        }
    }
  }

 private:
  template <bool WithCare, class G>
  SINTER_WORD static void add_staged(const G& g, const C* staging, const C* weights, bool both, sums (&s)[2]) {
    const int down = g.thread() / across * each, right = g.thread() % across * each;
    for (int k = 0; k < depth; ++k) {
      keep_loop(k);
      const few w = *reinterpret_cast<const few*>(weights + k * step + down);
      SINTER_UNROLL
      for (int half = 0; half < 2; ++half) {
        if (half == 1 && !both) continue;
        const few x = *reinterpret_cast<const few*>(staging + k * columns + half * side + right);
        SINTER_UNROLL
        for (int i = 0; i < each; ++i)
          for (int j = 0; j < each; ++j)
            if (!WithCare || w.value[i] != C(0)) s[half].at[i][j] += w.value[i] * x.value[j];
      }
    }
  }
};

}  // namespace sinter::cuda_impl
