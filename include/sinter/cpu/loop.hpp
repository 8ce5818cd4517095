// sinter/cpu/loop.hpp: drives one compiled kernel over an index space: coalescing, rows, staging, threads, partial
// sums.
//
// A kernel sees only linear arrays: operand s of element i is in[s][i & mask[s]], with mask 0 for a value that repeats.
// Everything that makes real operands different from that (strides, broadcasting, tails) is handled here, once, without
// knowing the formula. Work is cut into tasks by sizes alone, so results do not depend on the number of threads.
#pragma once

#include <cstring>
#include <memory>

#include "sinter/core/arena.hpp"
#include "sinter/core/memory_format.hpp"
#include "sinter/cpu/threads.hpp"
#include "sinter/expr/kernel.hpp"
#include "sinter/math/packet.hpp"

namespace sinter::cpu_impl {

using sinter::detail::max_operands;
using sinter::detail::pass_of;

inline constexpr int lanes = math::native_lanes;

/// What remains to be done with the values of a row: value = (what was read - shift) * scale - rest.
struct row_end {
  double shift = 0, scale = 1, rest = 0;
};

/// What a kernel function runs on: whole vectors only.
struct kernel_args {
  index_t n = 0;      ///< elements to compute, a multiple of `lanes`
  index_t first = 0;  ///< row-major index of the first of them
  const void* const* in = nullptr;
  const index_t* in_mask = nullptr;
  const int* in_size = nullptr;
  void* const* out = nullptr;
  const index_t* out_mask = nullptr;
  const int* out_size = nullptr;
  const bool* out_add = nullptr;
  bool stream = false;            ///< results go past the cache
  bool plain = false;             ///< so they do, no mask is 0, and nothing is added to what is there
  const row_end* made = nullptr;  ///< of the operands that kernel::made stands for
};
using kernel_fn = void (*)(const void* plan, const kernel_args&);

/// Results larger than this bypass the cache: they will not be read again before they would have left it.
inline constexpr index_t stream_bytes = index_t{8} << 20;

struct operand {
  char* data = nullptr;
  index_t strides[max_rank] = {};  ///< in elements
  int size = 0;
  bool add = false;
};

/// Bytes that hold one vector of any element type.
inline constexpr int vector_bytes = lanes * 8;

struct loop {
  int rank = 0;
  index_t shape[max_rank] = {};
  int inputs = 0;
  int outputs = 0;
  operand* in = nullptr;   ///< `inputs` of them, owned by the caller; preparing the loop rewrites their strides
  operand* out = nullptr;  ///< `outputs` of them
  kernel_fn fn = nullptr;
  const void* plan = nullptr;

  index_t numel() const {
    index_t n = 1;
    for (int i = 0; i < rank; ++i) n *= shape[i];
    return n;
  }
};

/// Puts the axes into the order in which the operands lie in memory, results first. For a loop whose elements are not
/// counted.
inline void order_by_memory(loop& l) {
  const auto strides_of = [&l](int s) { return s < l.outputs ? l.out[s].strides : l.in[s - l.outputs].strides; };
  int order[max_rank];
  if (l.rank < 2 || !sinter::detail::memory_order(l.shape, l.rank, l.inputs + l.outputs, strides_of, order)) return;
  for (int s = 0; s < l.inputs + l.outputs; ++s) sinter::detail::reorder_axes(order, l.rank, strides_of(s));
  sinter::detail::reorder_axes(order, l.rank, l.shape);
}

inline void coalesce(loop& l) {
  l.rank = sinter::detail::coalesce_axes(l.shape, l.rank, l.inputs + l.outputs, [&l](int s) {
    return s < l.inputs ? l.in[s].strides : l.out[s - l.inputs].strides;
  });
}

namespace detail {

template <class Word>
void copy_strided(char* to, index_t to_step, const char* from, index_t from_step, index_t n) {
  auto* t = reinterpret_cast<Word*>(to);
  const auto* f = reinterpret_cast<const Word*>(from);
  if (from_step == 0) {
    const Word v = *f;
    for (index_t i = 0; i < n; ++i) t[i * to_step] = v;
  } else {
    for (index_t i = 0; i < n; ++i) t[i * to_step] = f[i * from_step];
  }
}

inline void copy_strided(char* to, index_t to_step, const char* from, index_t from_step, index_t n, int size) {
  if (to_step == 1 && from_step == 1) {
    std::memcpy(to, from, static_cast<std::size_t>(n * size));
    return;
  }
  switch (size) {
    case 1:
      return copy_strided<std::uint8_t>(to, to_step, from, from_step, n);
    case 2:
      return copy_strided<std::uint16_t>(to, to_step, from, from_step, n);
    case 4:
      return copy_strided<std::uint32_t>(to, to_step, from, from_step, n);
    default:
      return copy_strided<std::uint64_t>(to, to_step, from, from_step, n);
  }
}

/// Copies a tile, h rows of w elements one after the other, from where it stands with these strides, or back to there.
/// Where rows stand side by side there, each line of cache is touched once.
template <class Word, bool Back>
void copy_tile(char* tile, char* there, index_t h, index_t w, index_t row_step, index_t step) {
  auto* const t = reinterpret_cast<Word*>(tile);
  auto* const m = reinterpret_cast<Word*>(there);
  const auto move = [](Word& in_tile, Word& outside) {
    if constexpr (Back) outside = in_tile;
    else in_tile = outside;
  };
  if (row_step != 1) {
    for (index_t r = 0; r < h; ++r)
      for (index_t c = 0; c < w; ++c) move(t[r * w + c], m[r * row_step + c * step]);
    return;
  }
  index_t r = 0;
  for (; r + 16 <= h; r += 16)
    for (index_t c = 0; c < w; ++c) SINTER_UNROLL
  for (index_t i = 0; i < 16; ++i) move(t[(r + i) * w + c], m[r + i + c * step]);
  for (; r < h; ++r)
    for (index_t c = 0; c < w; ++c) move(t[r * w + c], m[r + c * step]);
}

template <bool Back>
void copy_tile(char* tile, char* there, index_t h, index_t w, index_t row_step, index_t step, int size) {
  switch (size) {
    case 1:
      return copy_tile<std::uint8_t, Back>(tile, there, h, w, row_step, step);
    case 2:
      return copy_tile<std::uint16_t, Back>(tile, there, h, w, row_step, step);
    case 4:
      return copy_tile<std::uint32_t, Back>(tile, there, h, w, row_step, step);
    default:
      return copy_tile<std::uint64_t, Back>(tile, there, h, w, row_step, step);
  }
}

template <class T>
void add_strided(char* to, index_t step, const char* from, index_t n) {
  auto* t = reinterpret_cast<T*>(to);
  const auto* f = reinterpret_cast<const T*>(from);
  if (step == 0) {
    double sum = 0;
    for (index_t i = 0; i < n; ++i) sum += static_cast<double>(f[i]);
    *t += static_cast<T>(sum);
    return;
  }
  for (index_t i = 0; i < n; ++i) t[i * step] += f[i];
}

// Only gradients are summed; those of narrow elements are gathered in float.
inline void add_strided(char* to, index_t step, const char* from, index_t n, int size) {
  if (size == 4) add_strided<float>(to, step, from, n);
  else add_strided<double>(to, step, from, n);
}

/// Calls f(offset in elements, step, count) for the runs along the last axis that cover [begin, begin + n).
template <class F>
void walk(const loop& l, const index_t* strides, index_t begin, index_t n, F&& f) {
  if (l.rank == 0) {
    f(index_t{0}, index_t{0}, index_t{1});
    return;
  }
  index_t coordinate[max_rank];
  index_t rest = begin;
  for (int d = l.rank - 1; d >= 0; --d) {
    coordinate[d] = rest % l.shape[d];
    rest /= l.shape[d];
  }
  const int last = l.rank - 1;
  while (n > 0) {
    index_t offset = 0;
    for (int d = 0; d <= last; ++d) offset += coordinate[d] * strides[d];
    const index_t left = l.shape[last] - coordinate[last];
    const index_t run = left < n ? left : n;
    f(offset, strides[last], run);
    n -= run;
    coordinate[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      if (++coordinate[d] < l.shape[d]) break;
      coordinate[d] = 0;
    }
  }
}

/// Per-thread memory, one block per Use (0: staged operands, 1: a row, 2: partial sums); grows to the largest request.
template <int Use>
char* scratch(std::size_t bytes) {
  struct buffer {
    char* data = nullptr;
    std::size_t size = 0;
    ~buffer() { std::free(data); }
  };
  static thread_local buffer b;
  if (b.size < bytes) {
    std::free(b.data);
    b.size = (bytes + 4095) / 4096 * 4096;
    b.data = static_cast<char*>(std::aligned_alloc(4096, b.size));
    if (b.data == nullptr) {
      b.size = 0;
      sinter::detail::refuse<out_of_memory>({"cpu: out of memory for a staging buffer of ", bytes, " bytes"});
    }
  }
  return b.data;
}

/// The first of outputs [0, s] that has the place of output s: two uses of a leaf add to one gradient, hence to one
/// copy of it.
template <class Place>
int first_at(const Place& place, int s) {
  for (int i = 0; i < s; ++i)
    if (place(i) == place(s)) return i;
  return s;
}

/// Runs a kernel on the n < lanes elements from number `at` of its operands on, through padded copies: every element
/// takes the same arithmetic.
inline void run_tail(kernel_fn fn, const void* plan, const kernel_args& a, int inputs, int outputs, index_t at,
                     index_t n) {
  alignas(64) char in_pad[max_operands][vector_bytes];
  alignas(64) char out_pad[max_operands][vector_bytes];
  const void* in[max_operands];
  void* out[max_operands];
  index_t out_mask[max_operands];
  for (int s = 0; s < inputs; ++s) {
    in[s] = a.in[s];
    if (a.in_mask[s] == 0) continue;
    std::memset(in_pad[s], 0, vector_bytes);
    std::memcpy(in_pad[s], static_cast<const char*>(a.in[s]) + at * a.in_size[s],
                static_cast<std::size_t>(n * a.in_size[s]));
    in[s] = in_pad[s];
  }
  const auto place = [&](int s) { return static_cast<char*>(a.out[s]) + (at & a.out_mask[s]) * a.out_size[s]; };
  for (int s = 0; s < outputs; ++s) {
    const int first = first_at(place, s);
    out[s] = out_pad[first];
    out_mask[s] = -1;
    if (first < s || !a.out_add[s]) continue;
    std::memset(out_pad[s], 0, vector_bytes);
    std::memcpy(out_pad[s], place(s), static_cast<std::size_t>(n * a.out_size[s]));
  }
  fn(plan, {lanes, a.first + at, in, a.in_mask, a.in_size, out, out_mask, a.out_size, a.out_add, false, false, a.made});
  for (int s = 0; s < outputs; ++s) std::memcpy(place(s), out[s], static_cast<std::size_t>(n * a.out_size[s]));
}

}  // namespace detail

/// Elements below which a pass stays on the calling thread.
inline constexpr index_t serial_below = 32768;
/// Elements of a task, at least; longer rows are cut into several.
inline constexpr index_t task_elements = 65536;

/// A loop made ready to run any range of its row-major index space.
class prepared_loop {
 public:
  static constexpr index_t block = 512;     ///< elements staged at a time
  static constexpr index_t short_row = 64;  ///< shorter rows are staged
  static constexpr index_t band = 512;      ///< elements of a band of short rows, at least
  static constexpr index_t tile_rows = 32;  ///< of the tiles that a loop with transposed operands goes through
  static constexpr index_t tile_columns = 256;
  static constexpr index_t segment = 65536;  ///< longest kernel call in row mode
  static constexpr index_t sum_segment =
      512 * lanes;  ///< the same where lanes gather sums, whose error grows with the length

  explicit prepared_loop(const loop& source) : l_(source) {
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
    find_bands();
    if (rows_ || any_reducing_ || l_.rank < 2 || inner_ < 16 || l_.shape[l_.rank - 2] < 16) return;
    for (int s = 0; s < l_.inputs; ++s) tiled_ = tiled_ || is_transposed(l_.in[s]);
    for (int s = 0; s < l_.outputs; ++s) tiled_ = tiled_ || is_transposed(l_.out[s]);
  }

  const loop& shape() const { return l_; }
  index_t numel() const { return total_; }
  index_t inner() const { return inner_; }
  bool by_rows() const { return rows_; }
  /// Elements of which a range should be made up: whole rows, several where operands are transposed.
  index_t unit() const {
    return band_ > 0 ? band_
           : rows_   ? inner_
           : tiled_  ? inner_ * (4 * tile_rows * inner_ <= total_ ? tile_rows : 1)
                     : block;
  }
  bool reducing(int s) const { return reducing_[s]; }
  bool any_reducing() const { return any_reducing_; }
  /// Lets results bypass the cache where every vector of them is aligned, nothing is added to them after, and no two of
  /// them are in each other's way.
  void set_stream() {
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

  void run_rows(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const {
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

  template <class T>
  static void store_sum(char* to, const char* lane_sums, bool add) {
    const T sum = math::hsum(math::simd<T, lanes>::load(reinterpret_cast<const T*>(lane_sums)));
    T* p = reinterpret_cast<T*>(to);
    *p = add ? *p + sum : sum;
  }

  void run_blocks(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const {
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
    for (index_t at = begin; at < end; at += block) {
      const index_t n = end - at < block ? end - at : block;
      for (int s = 0; s < l_.inputs; ++s) {
        const operand& o = l_.in[s];
        if (repeated_in_[s]) continue;
        if (dense_in_[s]) {
          in[s] = o.data + at * o.size;
          continue;
        }
        char* to = staged + static_cast<std::size_t>(s) * bytes;
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

  void run_bands(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const {
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

  /// Whole rows [begin, end) in tiles, of which the operands without rows of their own are copied.
  void run_tiles(index_t begin, index_t end, char* const* base, const bool* add, bool linear) const {
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

  loop l_;
  index_t total_ = 0;
  index_t inner_ = 1;
  index_t band_ = 0;  ///< elements of a band, whole rows; 0 where there are no bands
  bool rows_ = false;
  bool tiled_ = false;
  bool stream_ = false;
  bool plain_ = false;
  bool any_reducing_ = false;
  const row_end* made_ = nullptr;
  bool dense_in_[max_operands] = {};
  bool repeated_in_[max_operands] = {};
  bool dense_out_[max_operands] = {};
  bool reducing_[max_operands] = {};
  int in_size_[max_operands] = {};
  int out_size_[max_operands] = {};
};

namespace detail {

using sinter::detail::temporary;

/// n values of a trivial type in arena memory.
template <class T>
class temporary_array {
 public:
  explicit temporary_array(index_t n) : memory_(static_cast<std::size_t>(n) * sizeof(T)) {}
  T* data() const { return static_cast<T*>(memory_.data()); }
  T& operator[](index_t i) const { return data()[i]; }

 private:
  temporary<cpu> memory_;
};

/// Elements between the first and the last that output s touches.
inline index_t span_of(const loop& l, const operand& o) {
  index_t n = 1;
  for (int d = 0; d < l.rank; ++d) n += (l.shape[d] - 1) * o.strides[d];
  return n;
}

/// Zeroes what an output that sums over empty axes shows, given that its own extents are dense.
inline void clear(const loop& l, const operand& o) {
  index_t n = 1;
  for (int d = 0; d < l.rank; ++d) n *= o.strides[d] == 0 ? 1 : l.shape[d];
  if (n > 0) std::memset(o.data, 0, static_cast<std::size_t>(n * o.size));
}

template <class T>
void add_partials(char* to, const char* partials, index_t n, index_t count, bool add) {
  T* t = reinterpret_cast<T*>(to);
  const T* p = reinterpret_cast<const T*>(partials);
  for (index_t i = 0; i < n; ++i) {
    T sum = p[i];
    for (index_t k = 1; k < count; ++k) sum += p[k * n + i];
    t[i] = add ? t[i] + sum : sum;
  }
}

}  // namespace detail

/// The sums of an output that tasks share: elements of one task's part, 0 for an output that needs none.
struct partial_sums {
  index_t elements[max_operands] = {};
  index_t total = 0;

  partial_sums(const prepared_loop& p) {
    const loop& l = p.shape();
    for (int s = 0; s < l.outputs; ++s)
      if (p.reducing(s) && !p.reduces_only_rows(s)) total += elements[s] = detail::span_of(l, l.out[s]);
  }

  /// f(output, elements) for those that need parts.
  template <class F>
  void each(int outputs, const F& f) const {
    for (int s = 0; s < outputs; ++s)
      if (elements[s] > 0) f(s, elements[s]);
  }
};

namespace detail {

/// to (+)= the sum of `count` parts of n elements.
inline void add_partials(const operand& o, char* to, const char* parts, index_t n, index_t count, bool add) {
  if (o.size == 4) add_partials<float>(to, parts, n, count, add);
  else add_partials<double>(to, parts, n, count, add);
}

/// Elements per task: whole rows where rows are short, pieces of rows otherwise. It follows from the shape alone.
inline index_t task_size(const prepared_loop& p, const partial_sums& sums) {
  const index_t total = p.numel();
  index_t grain = total < serial_below ? total : task_elements;
  if (sums.total > 0) {
    index_t tasks = total / (8 * sums.total);
    if (tasks > 256) tasks = 256;
    if (tasks < 1) tasks = 1;
    const index_t wanted = (total + tasks - 1) / tasks;
    if (grain < wanted) grain = wanted;
  }
  if (grain >= total) return total;
  if (p.by_rows() && (p.inner() < grain || (p.any_reducing() && p.shape().rank > 1)))
    return (grain + p.inner() - 1) / p.inner() * p.inner();
  if (p.by_rows()) return grain / lanes * lanes;
  return (grain + p.unit() - 1) / p.unit() * p.unit();
}

/// Elements whose sums are added one by one: some hundred terms where there is a choice.
inline index_t piece_size(const partial_sums& sums) {
  const index_t few = std::clamp<index_t>(256 * sums.total, 2048, prepared_loop::sum_segment);
  return std::max(few, 16 * sums.total);
}

/// The tasks gather their sums apart, in pieces: rounding errors grow with the number of terms that are added one by
/// one.
inline void run_with_partials(const prepared_loop& p, const partial_sums& sums, index_t grain, index_t tasks,
                              thread_pool& pool) {
  const loop& l = p.shape();
  const index_t total = p.numel();
  index_t piece = piece_size(sums);
  const index_t unit = p.unit();
  piece = piece > grain ? grain : (piece + unit - 1) / unit * unit;
  index_t offset[max_operands] = {};
  index_t bytes = 0;
  sums.each(l.outputs, [&](int s, index_t n) {
    offset[s] = bytes;
    bytes += (n * l.out[s].size * tasks + 63) / 64 * 64;
  });
  const temporary<cpu> memory(static_cast<std::size_t>(bytes));
  char* const parts = static_cast<char*>(memory.data());
  pool.parallel_for(tasks, [&](index_t t) {
    char* base[max_operands];
    char* sum_of_task[max_operands];
    bool add[max_operands];
    for (int s = 0; s < l.outputs; ++s) {
      base[s] = l.out[s].data;
      add[s] = l.out[s].add;
    }
    char* of_piece = scratch<2>(static_cast<std::size_t>(sums.total) * 8);
    sums.each(l.outputs, [&](int s, index_t n) {
      sum_of_task[s] = parts + offset[s] + t * n * l.out[s].size;
      base[s] = of_piece;
      of_piece += (n * l.out[s].size + 7) / 8 * 8;
      add[s] = true;
    });
    const index_t begin = t * grain;
    const index_t end = begin + grain < total ? begin + grain : total;
    for (index_t at = begin; at < end; at += piece) {
      sums.each(l.outputs,
                [&](int s, index_t n) { std::memset(base[s], 0, static_cast<std::size_t>(n * l.out[s].size)); });
      p.run(at, at + piece < end ? at + piece : end, base, add);
      sums.each(l.outputs,
                [&](int s, index_t n) { add_partials(l.out[s], sum_of_task[s], base[s], n, 1, at > begin); });
    }
  });
  sums.each(l.outputs, [&](int s, index_t n) {
    add_partials(l.out[s], l.out[s].data, parts + offset[s], n, tasks, l.out[s].add);
  });
}

}  // namespace detail

/// Runs a whole loop. Outputs that sum over an axis are gathered in one part per task and added in task order.
inline void run_loop(const loop& source, thread_pool& pool, bool stream = false) {
  prepared_loop p(source);
  const loop& l = p.shape();
  const index_t total = p.numel();
  if (total == 0) {
    for (int s = 0; s < l.outputs; ++s)  // sums of nothing
      if (!l.out[s].add) detail::clear(l, l.out[s]);
    return;
  }
  if (stream) p.set_stream();
  const partial_sums sums(p);
  const index_t grain = detail::task_size(p, sums);
  const index_t tasks = (total + grain - 1) / grain;
  if (sums.total > 0 && (tasks > 1 || total > detail::piece_size(sums)))
    return detail::run_with_partials(p, sums, grain, tasks, pool);

  char* base[max_operands];
  bool add[max_operands];
  for (int s = 0; s < l.outputs; ++s) {
    base[s] = l.out[s].data;
    add[s] = l.out[s].add;
  }
  // The sums of a single task go straight to their place, which starts from zero.
  sums.each(l.outputs, [&](int s, index_t n) {
    if (!add[s]) std::memset(base[s], 0, static_cast<std::size_t>(n * l.out[s].size));
    add[s] = true;
  });
  pool.parallel_for(tasks,
                    [&](index_t t) { p.run(t * grain, (t + 1) * grain < total ? (t + 1) * grain : total, base, add); });
}

}  // namespace sinter::cpu_impl
