// sinter/cpu/detail/prepared_loop.hpp: runs a kernel on any range of an index space: in rows, in bands of short rows,
// in tiles where operands are transposed, in staged blocks else.
#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/cpu/detail/loop_copies.hpp"
#include "sinter/cpu/detail/loop_shape.hpp"

namespace sinter::cpu_impl {

/// Elements below which a pass stays on the calling thread.
inline constexpr index_t serial_below = 32768;
/// Elements of a task, at least; longer rows are cut into several.
inline constexpr index_t task_elements = 65536;

/// A loop made ready to run any range of its row-major index space.
class prepared_loop {
 public:
  static constexpr index_t block = 512;     ///< elements staged at a time
  static constexpr index_t short_row = 64;  ///< shorter rows are staged
  static constexpr index_t tiny_row = 16;   ///< shorter ones are staged column by column where these are contiguous
  static constexpr index_t band = 512;      ///< elements of a band of short rows, at least
  static constexpr index_t tile_rows = 32;  ///< of the tiles that a loop with transposed operands goes through
  static constexpr index_t tile_columns = 256;
  static constexpr index_t segment = 65536;  ///< longest kernel call in row mode
  static constexpr index_t sum_segment =
      512 * lanes;  ///< the same where lanes gather sums, whose error grows with the length

  explicit prepared_loop(const loop& source);

  const loop& shape() const { return l_; }
  index_t numel() const { return total_; }
  index_t inner() const { return inner_; }
  bool by_rows() const { return rows_; }
  /// Elements of which a range should be made up: whole rows, several where operands are transposed.
  index_t unit() const {
    return band_ > 0 ? band_
           : rows_   ? inner_
           : tiled_  ? inner_ * (4 * tile_rows * inner_ <= total_ ? tile_rows : 1)
                     : block_;
  }
  bool reducing(int s) const { return reducing_[s]; }
  bool any_reducing() const { return any_reducing_; }
  /// Lets results bypass the cache where every vector of them is aligned, nothing is added to them after, and no two of
  /// them are in each other's way.
  void set_stream();

  /// What is left to do with the rows that follow; it is read when they run.
  void set_row_end(const row_end* end) { made_ = end; }

  /// True when every element of the index space meets its own element of output s, apart from the last axis.
  bool reduces_only_rows(int s) const {
    for (int d = 0; d + 1 < l_.rank; ++d)
      if (l_.out[s].strides[d] == 0) return false;
    return rows_ && l_.rank > 1;
  }

  /// Computes elements [begin, end). Output s goes to base[s] in place of its own data; where `linear`, output 0 is a
  /// dense array whose first element is number `begin`.
  void run(index_t begin, index_t end, char* const* base, const bool* add, bool linear = false) const {
    if (band_ > 0 && end - begin >= 4 * band_ && begin % inner_ == 0) run_bands(begin, end, base, add, linear);
    else if (rows_) run_rows(begin, end, base, add, linear);
    else if (tiled_ && begin % inner_ == 0 && end % inner_ == 0) run_tiles(begin, end, base, add, linear);
    else run_blocks(begin, end, base, add, linear);
  }

 private:
  index_t inner_stride(const operand& o) const { return l_.rank > 0 ? o.strides[l_.rank - 1] : 1; }

  bool is_dense(const operand& o) const {
    index_t step = 1;
    for (int d = l_.rank - 1; d >= 0; --d) {
      if (o.strides[d] != step) return false;
      step *= l_.shape[d];
    }
    return true;
  }
  bool is_repeated(const operand& o) const {
    for (int d = 0; d < l_.rank; ++d)
      if (o.strides[d] != 0) return false;
    return l_.rank > 0;
  }
  /// Do elements that follow each other in memory belong to rows that follow each other?
  bool is_transposed(const operand& o) const { return o.strides[l_.rank - 2] == 1 && inner_stride(o) * o.size >= 64; }
  /// Can both bypass the cache in turn? A vector of half a line leaves it open until the next one comes, and open lines
  /// at the same place of a page, or next to it, drive each other out: ten times slower on Zen 3.
  static bool apart(const operand& a, const operand& b) {
    if (lanes * std::min(a.size, b.size) >= 64) return true;
    if (a.size != b.size) return false;  // they meet somewhere
    const auto distance = (reinterpret_cast<std::uintptr_t>(a.data) - reinterpret_cast<std::uintptr_t>(b.data)) % 4096;
    return distance >= 128 && distance <= 4096 - 128;
  }
  bool is_reducing(const operand& o) const {
    for (int d = 0; d < l_.rank; ++d)
      if (o.strides[d] == 0) return true;
    return false;
  }

  /// Short rows beside values that every row meets, such as biases: several rows at once make a band, for which these
  /// values are repeated and their sums are gathered.
  void find_bands() {
    if (l_.rank != 2 || inner_ >= band) return;
    const auto meets_every_row = [](const operand& o) { return o.strides[0] == 0 && o.strides[1] == 1; };
    for (int s = 0; s < l_.inputs; ++s)
      if (!dense_in_[s] && !repeated_in_[s] && !meets_every_row(l_.in[s])) return;
    for (int s = 0; s < l_.outputs; ++s)
      if (!dense_out_[s] && !meets_every_row(l_.out[s])) return;
    // A power of two, so that sums can be folded in halves.
    band_ = inner_;
    while (band_ < band) band_ *= 2;
  }

  /// The kernel on a.n elements, of which the last may be less than a vector.
  void call(kernel_args a) const {
    const index_t rest = a.n % lanes;
    a.n -= rest;
    a.made = made_;
    if (a.n > 0) l_.fn(l_.plan, a);
    if (rest > 0) detail::run_tail(l_.fn, l_.plan, a, l_.inputs, l_.outputs, a.n, rest);
  }

  void run_rows(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const;

  template <class T>
  static void store_sum(char* to, const char* lane_sums, bool add) {
    const T sum = math::hsum(math::simd<T, lanes>::load(reinterpret_cast<const T*>(lane_sums)));
    T* p = reinterpret_cast<T*>(to);
    *p = add ? *p + sum : sum;
  }

  void run_blocks(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const;

  /// Adds the second half of n elements to the first one, and so on, until `row` elements are left.
  template <class T>
  static void fold_band(T* values, index_t n, index_t row) {
    using vector = math::simd<T, lanes>;
    for (n /= 2; n >= row; n /= 2) {
      index_t i = 0;
      for (; i + lanes <= n; i += lanes) (vector::load(values + i) + vector::load(values + n + i)).store(values + i);
      for (; i < n; ++i) values[i] += values[n + i];
    }
  }
  template <class T>
  void store_band(char* to, char* values, bool add) const {
    T* const v = reinterpret_cast<T*>(values);
    T* const t = reinterpret_cast<T*>(to);
    fold_band(v, band_, inner_);
    for (index_t i = 0; i < inner_; ++i) t[i] = add ? t[i] + v[i] : v[i];
  }

  void run_bands(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const;

  /// Whole rows [begin, end) in tiles, of which the operands without rows of their own are copied.
  void run_tiles(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const;

  loop l_;
  index_t total_ = 0;
  index_t inner_ = 1;
  index_t block_ = block;  ///< elements that are staged at a time: whole rows where they are tiny
  index_t band_ = 0;       ///< elements of a band, whole rows; 0 where there are no bands
  bool rows_ = false;
  bool tiled_ = false;
  bool stream_ = false;
  bool plain_ = false;
  bool any_reducing_ = false;
  const row_end* made_ = nullptr;
  bool dense_in_[max_operands];  ///< this and the others up to as many as there are
  bool repeated_in_[max_operands];
  bool dense_out_[max_operands];
  bool reducing_[max_operands];
  int in_size_[max_operands];
  int out_size_[max_operands];
};

#if SINTER_DEFINES

SINTER_SHARED prepared_loop::prepared_loop(const loop& source) : l_(source) {
  coalesce(l_);
  total_ = l_.numel();
  inner_ = l_.rank > 0 ? l_.shape[l_.rank - 1] : 1;
  rows_ = l_.rank <= 1 || inner_ >= short_row;
  for (int s = 0; s < l_.inputs; ++s) {
    in_size_[s] = l_.in[s].size;
    const index_t step = inner_stride(l_.in[s]);
    rows_ = rows_ && (step == 0 || step == 1);
    dense_in_[s] = is_dense(l_.in[s]);
    repeated_in_[s] = is_repeated(l_.in[s]);
  }
  for (int s = 0; s < l_.outputs; ++s) {
    out_size_[s] = l_.out[s].size;
    const index_t step = inner_stride(l_.out[s]);
    rows_ = rows_ && (step == 0 || step == 1);
    dense_out_[s] = is_dense(l_.out[s]);
    reducing_[s] = is_reducing(l_.out[s]);
    any_reducing_ = any_reducing_ || reducing_[s];
  }
  if (!rows_ && inner_ < tiny_row && inner_ > 0) block_ = block / inner_ * inner_;
  find_bands();
  if (rows_ || any_reducing_ || l_.rank < 2 || inner_ < 16 || l_.shape[l_.rank - 2] < 16) return;
  for (int s = 0; s < l_.inputs; ++s) tiled_ = tiled_ || is_transposed(l_.in[s]);
  for (int s = 0; s < l_.outputs; ++s) tiled_ = tiled_ || is_transposed(l_.out[s]);
}

SINTER_SHARED void prepared_loop::set_stream() {
  // Tasks begin at whole vectors, counted from the first element: in long rows of other lengths these are not whole
  // vectors of a row.
  stream_ = (rows_ || band_ > 0) && (l_.rank <= 1 || inner_ % lanes == 0 || inner_ < task_elements);
  const auto streams = [this](int s) { return !l_.out[s].add && !reducing_[s]; };
  for (int s = 0; s < l_.outputs; ++s) {
    if (!streams(s)) continue;
    stream_ = stream_ && reinterpret_cast<std::uintptr_t>(l_.out[s].data) % 64 == 0;
    for (int d = 0; d + 1 < l_.rank; ++d) stream_ = stream_ && l_.out[s].strides[d] % lanes == 0;
    for (int other = 0; other < l_.outputs; ++other) {
      if (other == s) continue;
      const bool adds_to_it = l_.out[s].data == l_.out[other].data;
      stream_ = stream_ && !adds_to_it && (!streams(other) || apart(l_.out[s], l_.out[other]));
    }
  }
  plain_ = stream_;
  for (int s = 0; s < l_.inputs; ++s) plain_ = plain_ && inner_stride(l_.in[s]) == 1;
  for (int s = 0; s < l_.outputs; ++s) plain_ = plain_ && inner_stride(l_.out[s]) == 1;
}

SINTER_SHARED void prepared_loop::run_rows(index_t begin, index_t end, char* const* base, const bool* add,
                                           bool linear) const {
  alignas(64) char repeated[max_operands][vector_bytes];
  alignas(64) char sums[max_operands][vector_bytes];
  const void* in[max_operands];
  void* out[max_operands];
  index_t in_mask[max_operands];
  index_t out_mask[max_operands];
  bool out_add[max_operands];
  const int last = l_.rank - 1;
  const index_t longest = any_reducing_ ? sum_segment : segment;
  for (index_t at = begin; at < end;) {
    const index_t column = at % inner_;
    index_t n = inner_ - column;
    if (n > end - at) n = end - at;
    if (n > longest) n = longest;
    index_t coordinate[max_rank];
    index_t rest = at / inner_;
    for (int d = last - 1; d >= 0; --d) {
      coordinate[d] = rest % l_.shape[d];
      rest /= l_.shape[d];
    }
    const auto offset = [&](const operand& o) {
      index_t x = last >= 0 ? column * o.strides[last] : 0;
      for (int d = 0; d < last; ++d) x += coordinate[d] * o.strides[d];
      return x * o.size;
    };
    for (int s = 0; s < l_.inputs; ++s) {
      const operand& o = l_.in[s];
      const char* p = o.data + offset(o);
      in_mask[s] = inner_stride(o) == 0 ? 0 : -1;
      if (in_mask[s] == 0) {
        detail::copy_strided(repeated[s], 1, p, 0, lanes, o.size);
        p = repeated[s];
      }
      in[s] = p;
    }
    bool plain = plain_;
    for (int s = 0; s < l_.outputs; ++s) {
      const operand& o = l_.out[s];
      const bool sum = inner_stride(o) == 0;
      out_mask[s] = sum ? 0 : -1;
      out_add[s] = sum || add[s];
      plain = plain && !out_add[s];
      if (sum) std::memset(sums[s], 0, sizeof sums[s]);
      out[s] = sum ? sums[s] : base[s] + (linear && s == 0 ? (at - begin) * o.size : offset(o));
    }
    call({n, at, in, in_mask, in_size_, out, out_mask, out_size_, out_add, stream_, plain});
    for (int s = 0; s < l_.outputs; ++s) {
      if (out_mask[s] != 0) continue;
      char* to = base[s] + offset(l_.out[s]);
      if (out_size_[s] == 4) store_sum<float>(to, sums[s], add[s] || column != 0);
      else store_sum<double>(to, sums[s], add[s] || column != 0);
    }
    at += n;
  }
}

SINTER_SHARED void prepared_loop::run_blocks(index_t begin, index_t end, char* const* base, const bool* add,
                                             bool linear) const {
  constexpr std::size_t bytes = static_cast<std::size_t>(block) * 8;
  char* const staged = detail::scratch<0>(static_cast<std::size_t>(l_.inputs + l_.outputs) * bytes);
  const void* in[max_operands];
  void* out[max_operands];
  index_t in_mask[max_operands];
  index_t out_mask[max_operands];
  bool out_add[max_operands];
  for (int s = 0; s < l_.inputs; ++s) {
    in_mask[s] = repeated_in_[s] ? 0 : -1;
    in[s] = staged + static_cast<std::size_t>(s) * bytes;
    if (repeated_in_[s])
      detail::copy_strided(staged + static_cast<std::size_t>(s) * bytes, 1, l_.in[s].data, 0, lanes, l_.in[s].size);
  }
  loop tiny_rows = l_;
  --tiny_rows.rank;
  for (index_t at = begin; at < end; at += block_) {
    const index_t n = end - at < block_ ? end - at : block_;
    const bool is_of_tiny_rows = block_ % inner_ == 0 && inner_ < tiny_row && at % inner_ == 0 && n % inner_ == 0;
    for (int s = 0; s < l_.inputs; ++s) {
      const operand& o = l_.in[s];
      if (repeated_in_[s]) continue;
      if (dense_in_[s]) {
        in[s] = o.data + at * o.size;
        continue;
      }
      char* to = staged + static_cast<std::size_t>(s) * bytes;
      if (is_of_tiny_rows && l_.rank > 1 && o.strides[l_.rank - 2] == 1) {
        detail::walk(tiny_rows, o.strides, at / inner_, n / inner_, [&](index_t offset, index_t step, index_t count) {
          for (index_t j = 0; j < inner_; ++j)
            detail::copy_strided(to + j * o.size, inner_, o.data + (offset + j * inner_stride(o)) * o.size, step, count,
                                 o.size);
          to += count * inner_ * o.size;
        });
        continue;
      }
      detail::walk(l_, o.strides, at, n, [&](index_t offset, index_t step, index_t count) {
        detail::copy_strided(to, 1, o.data + offset * o.size, step, count, o.size);
        to += count * o.size;
      });
    }
    for (int s = 0; s < l_.outputs; ++s) {
      const operand& o = l_.out[s];
      out_mask[s] = -1;
      const bool direct = dense_out_[s] || (linear && s == 0);
      const int first = reducing_[s] ? s : detail::first_at([base](int i) { return base[i]; }, s);
      char* const stage = staged + static_cast<std::size_t>(l_.inputs + first) * bytes;
      out_add[s] = add[s] && !reducing_[s];
      out[s] = direct ? base[s] + (linear && s == 0 ? at - begin : at) * o.size : stage;
      if (direct || first < s || !out_add[s]) continue;
      char* to = stage;
      detail::walk(l_, o.strides, at, n, [&](index_t offset, index_t step, index_t count) {
        detail::copy_strided(to, 1, base[s] + offset * o.size, step, count, o.size);
        to += count * o.size;
      });
    }
    call({n, at, in, in_mask, in_size_, out, out_mask, out_size_, out_add});
    for (int s = 0; s < l_.outputs; ++s) {
      const operand& o = l_.out[s];
      if (dense_out_[s] || (linear && s == 0)) continue;
      const char* from = static_cast<const char*>(out[s]);
      detail::walk(l_, o.strides, at, n, [&](index_t offset, index_t step, index_t count) {
        if (add[s] && reducing_[s]) detail::add_strided(base[s] + offset * o.size, step, from, count, o.size);
        else detail::copy_strided(base[s] + offset * o.size, step, from, 1, count, o.size);
        from += count * o.size;
      });
    }
  }
}

SINTER_SHARED void prepared_loop::run_bands(index_t begin, index_t end, char* const* base, const bool* add,
                                            bool linear) const {
  const std::size_t bytes = static_cast<std::size_t>(band_) * 8;
  char* staged = detail::scratch<0>(static_cast<std::size_t>(l_.inputs + l_.outputs) * bytes);
  const void* in[max_operands];
  void* out[max_operands];
  index_t in_mask[max_operands];
  index_t out_mask[max_operands];
  bool out_add[max_operands];
  bool plain = plain_;
  for (int s = 0; s < l_.inputs; ++s, staged += bytes) {
    const operand& o = l_.in[s];
    in_mask[s] = repeated_in_[s] ? 0 : -1;
    in[s] = staged;
    if (repeated_in_[s]) detail::copy_strided(staged, 1, o.data, 0, lanes, o.size);
    else if (!dense_in_[s])
      for (index_t i = 0; i < band_; i += inner_)
        std::memcpy(staged + i * o.size, o.data, static_cast<std::size_t>(inner_ * o.size));
  }
  for (int s = 0; s < l_.outputs; ++s, staged += bytes) {
    out_mask[s] = -1;
    out[s] = staged;
    out_add[s] = reducing_[s] || add[s];
    plain = plain && !out_add[s];
    if (reducing_[s]) std::memset(staged, 0, bytes);
  }
  for (index_t at = begin; at < end; at += band_) {
    for (int s = 0; s < l_.inputs; ++s)
      if (dense_in_[s]) in[s] = l_.in[s].data + at * l_.in[s].size;
    for (int s = 0; s < l_.outputs; ++s)
      if (!reducing_[s]) out[s] = base[s] + (linear && s == 0 ? at - begin : at) * l_.out[s].size;
    const index_t n = end - at < band_ ? end - at : band_;
    call({n, at, in, in_mask, in_size_, out, out_mask, out_size_, out_add, stream_, plain});
  }
  for (int s = 0; s < l_.outputs; ++s) {
    if (!reducing_[s]) continue;
    char* const sums = static_cast<char*>(out[s]);
    if (out_size_[s] == 4) store_band<float>(base[s], sums, add[s]);
    else store_band<double>(base[s], sums, add[s]);
  }
}

SINTER_SHARED void prepared_loop::run_tiles(index_t begin, index_t end, char* const* base, const bool* add,
                                            bool linear) const {
  constexpr std::size_t bytes = static_cast<std::size_t>(tile_rows * tile_columns) * 8;
  char* const staged = detail::scratch<0>(static_cast<std::size_t>(l_.inputs + l_.outputs) * bytes);
  char* tile[2 * max_operands];     // where the first row is read or written
  index_t pitch[2 * max_operands];  // bytes from row to row
  const void* in[max_operands];
  void* out[max_operands];
  index_t mask[max_operands];
  std::fill_n(mask, max_operands, index_t{-1});
  const int last = l_.rank - 1;
  index_t h = 0;
  for (index_t row = begin / inner_; row < end / inner_; row += h) {
    index_t coordinate[max_rank];
    index_t rest = row;
    for (int d = last - 1; d >= 0; --d) {
      coordinate[d] = rest % l_.shape[d];
      rest /= l_.shape[d];
    }
    h = std::min({tile_rows, l_.shape[last - 1] - coordinate[last - 1], end / inner_ - row});
    for (index_t column = 0; column < inner_; column += tile_columns) {
      const index_t w = std::min(tile_columns, inner_ - column);
      const auto place = [&](const operand& o, char* data) {
        index_t x = column * o.strides[last];
        for (int d = 0; d < last; ++d) x += coordinate[d] * o.strides[d];
        return data + x * o.size;
      };
      for (int s = 0; s < l_.inputs; ++s) {
        const operand& o = l_.in[s];
        tile[s] = place(o, o.data);
        pitch[s] = o.strides[last - 1] * o.size;
        if (inner_stride(o) == 1) continue;
        char* const copy = staged + static_cast<std::size_t>(s) * bytes;
        detail::copy_tile<false>(copy, tile[s], h, w, o.strides[last - 1], inner_stride(o), o.size);
        tile[s] = copy;
        pitch[s] = w * o.size;
      }
      const auto direct = [&](int s) { return inner_stride(l_.out[s]) == 1 || (linear && s == 0); };
      for (int s = 0; s < l_.outputs; ++s) {
        const operand& o = l_.out[s];
        const int at = l_.inputs + s;
        if (linear && s == 0) {
          tile[at] = base[s] + (row * inner_ + column - begin) * o.size;
          pitch[at] = inner_ * o.size;
        } else if (direct(s)) {
          tile[at] = place(o, base[s]);
          pitch[at] = o.strides[last - 1] * o.size;
        } else {
          const int first = detail::first_at([base](int i) { return base[i]; }, s);
          tile[at] = staged + static_cast<std::size_t>(l_.inputs + first) * bytes;
          pitch[at] = w * o.size;
          if (first == s && add[s])
            detail::copy_tile<false>(tile[at], place(o, base[s]), h, w, o.strides[last - 1], inner_stride(o), o.size);
        }
      }
      for (index_t r = 0; r < h; ++r) {
        for (int s = 0; s < l_.inputs; ++s) in[s] = tile[s] + r * pitch[s];
        for (int s = 0; s < l_.outputs; ++s) out[s] = tile[l_.inputs + s] + r * pitch[l_.inputs + s];
        call({w, (row + r) * inner_ + column, in, mask, in_size_, out, mask, out_size_, add});
      }
      for (int s = 0; s < l_.outputs; ++s)
        if (const operand& o = l_.out[s]; !direct(s))
          detail::copy_tile<true>(tile[l_.inputs + s], place(o, base[s]), h, w, o.strides[last - 1], inner_stride(o),
                                  o.size);
    }
  }
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl
