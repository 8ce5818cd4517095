// sinter/cpu/detail/conv_product.hpp: patches times weights, without a matrix of patches.
#pragma once

#include <utility>

#include "sinter/cpu/detail/conv_patches.hpp"
#include "sinter/cpu/detail/gemm_packed.hpp"
#include "sinter/cpu/loop.hpp"

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wignored-attributes"
#endif

namespace sinter::cpu_impl::detail {

/// The weights of one product as a matrix ((tap, channel), column), read through strides; taps may run backwards.
template <class T>
struct weight_source {
  const T* data;
  index_t taps[3], tap_stride[3], channels, channel_stride, columns, column_stride;
};

/// Those weights in strips of columns as the kernels read them, block by block of k.
template <class T>
class packed_weights {
 public:
  using shape = tile_shape<T>;

  packed_weights(const weight_source<T>& w, index_t max_block, thread_pool& pool)
      : k(w.taps[0] * w.taps[1] * w.taps[2] * w.channels),
        columns(w.columns),
        strips(ceil_div(columns, shape::max_columns)),
        blocks(k > 0 ? ceil_div(k, max_block) : 1),
        k_block(ceil_div(k, blocks)),
        width_(strips == 0
                   ? 0
                   : (strips - 1) * shape::max_columns + strip_width<T>(columns - (strips - 1) * shape::max_columns)),
        memory_(width_ * k) {
    // Where taps follow one another in memory, the lines read for one tap serve the next ones.
    constexpr index_t together = 32;
    const index_t parts = ceil_div(w.channels, together);
    pool.parallel_for(k > 0 ? strips * parts : 0, [&](index_t task) {
      const index_t first = task % parts * together;
      pack(w, task / parts, first, smaller(first + together, w.channels));
    });
  }

  index_t k_begin(index_t block) const { return smaller(block * k_block, k); }
  index_t k_end(index_t block) const { return smaller(block * k_block + k_block, k); }
  index_t strip_columns(index_t strip) const { return strip_width<T>(columns - strip * shape::max_columns); }
  const T* strip(index_t block, index_t s) const { return memory_.data() + strip_begin(block, s); }

  const index_t k, columns, strips, blocks, k_block;

 private:
  index_t strip_begin(index_t block, index_t s) const {
    return k_begin(block) * width_ + s * shape::max_columns * (k_end(block) - k_begin(block));
  }

  void pack(const weight_source<T>& w, index_t s, index_t c0, index_t c1) const {
    const index_t first = s * shape::max_columns, width = strip_columns(s), valid = smaller(width, columns - first);
    const T* const data = w.data + first * w.column_stride;
    index_t tap = 0;
    for (index_t t0 = 0; t0 < w.taps[0]; ++t0)
      for (index_t t1 = 0; t1 < w.taps[1]; ++t1)
        for (index_t t2 = 0; t2 < w.taps[2]; ++t2, ++tap) {
          const index_t at = t0 * w.tap_stride[0] + t1 * w.tap_stride[1] + t2 * w.tap_stride[2];
          for (index_t c = c0; c < c1;) {
            const index_t row = tap * w.channels + c, block = row / k_block;
            const index_t end = smaller(c1, c + k_end(block) - row);
            T* to = memory_.data() + strip_begin(block, s) + (row - k_begin(block)) * width;
            for (; c < end; ++c, to += width) {
              const T* const from = data + at + c * w.channel_stride;
              for (index_t j = 0; j < valid; ++j) to[j] = from[j * w.column_stride];
              for (index_t j = valid; j < width; ++j) to[j] = T(0);
            }
          }
        }
  }

  index_t width_;
  temporary_array<T> memory_;
};

/// C(Rows, Packets * lanes) = [C +] A(Rows, k) B(k, Packets * lanes), where A's rows consist of segments of `length`
/// elements each: that of segment s and row r begins at lines[s * Rows + r].
template <class T, int Packets, int... R, int... I>
void accumulate_segments(index_t segments, index_t length, const T* const* lines, const T* b, T* c, index_t ldc,
                         bool add, std::integer_sequence<int, R...>, std::integer_sequence<int, I...>) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  packet sum[sizeof...(I)];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  for (index_t s = 0; s < segments; ++s, lines += sizeof...(R)) {
    const T* const row[] = {lines[R]...};
    for (index_t k = 0; k < length; ++k) {
      packet right[std::size_t{Packets}];
      for (int p = 0; p < Packets; ++p) {
        right[p] = ei::pload<packet>(b + p * lanes);
        read_once(right[p]);
      }
      ((sum[I] = ei::pmadd(ei::pset1<packet>(row[I / Packets][k]), right[I % Packets], sum[I])), ...);
      b += Packets * lanes;
    }
  }
  if (add)
    ((ei::pstoreu(c + I / Packets * ldc + I % Packets * lanes,
                  ei::padd(ei::ploadu<packet>(c + I / Packets * ldc + I % Packets * lanes), sum[I]))),
     ...);
  else ((ei::pstoreu(c + I / Packets * ldc + I % Packets * lanes, sum[I])), ...);
}

/// Rows of which accumulate_segments reads each where it lies: as many as there are registers for, addresses included.
inline constexpr int segment_rows = EIGEN_ARCH_DEFAULT_NUMBER_OF_REGISTERS >= 32 ? 8 : 6;

template <class T, int Packets>
void multiply_segments(index_t segments, index_t length, const T* const* lines, const T* b, T* c, index_t ldc,
                       bool add) {
  accumulate_segments<T, Packets>(segments, length, lines, b, c, ldc, add,
                                  std::make_integer_sequence<int, segment_rows>{},
                                  std::make_integer_sequence<int, segment_rows * Packets>{});
}

/// Where the rows of the product lie: row (n, o) at data + n * image + sum over axes of o * step.
template <class T>
struct result_rows {
  T* data;
  index_t image, step[3];
  index_t row_length;  ///< of the matrix that the epilogue is told of, a divisor of all the steps
  index_t offset;      ///< of data in that matrix
};

/// result(row, column) = [result +] patches(row, k) weights(k, column), for columns [first, first + columns) of it.
///
/// A task takes a block of rows. Block by block of k it packs their patches, panel by panel into memory that its L2
/// cache holds, and multiplies a panel while it is in L1. Where k is small it packs none, and the kernel reads the
/// patches where they lie. An element is one chain of multiply-adds within a block of k, and blocks are added in order.
template <class T>
struct patch_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_panels = 16;

  const patches<T>& a;
  const packed_weights<T>& b;
  const result_rows<T>& c;
  index_t first_column;
  bool add;
  const conv_finish<T>& finish;
  bool in_place;
  index_t rows, panel_rows, panels_per_task, column_parts;

  /// Does the kernel read patches where they lie?
  static bool reads_in_place(const patches<T>& image) {
    return image.columns() <= max_in_place && image.segment() <= zero_line_length;
  }
  static index_t max_block(const patches<T>& image) { return reads_in_place(image) ? max_in_place : patch_block<T>; }
  static constexpr index_t max_in_place = 8192 / static_cast<index_t>(sizeof(T));

  patch_product(const patches<T>& image, const packed_weights<T>& weights, const result_rows<T>& result, index_t first,
                bool accumulate, const conv_finish<T>& last)
      : a(image),
        b(weights),
        c(result),
        first_column(first),
        add(accumulate),
        finish(last),
        in_place(reads_in_place(image)),
        rows(image.rows()),
        panel_rows(in_place ? segment_rows : shape::max_rows) {}

  void compute(thread_pool& pool) {
    if (rows == 0 || b.columns == 0) return;
    const index_t panel_bytes = (b.k_block + 1) * panel_rows * static_cast<index_t>(sizeof(T));
    const index_t fitting = in_place ? max_panels : quarter_of_l2() / panel_bytes;
    panels_per_task = fitting < 1 ? 1 : smaller(fitting, max_panels);
    const index_t row_blocks = ceil_div(rows, panels_per_task * panel_rows);
    // Too few blocks of rows for all threads: they share columns too, and pack the same patches.
    const index_t wanted = 3 * pool.size();
    column_parts = row_blocks >= wanted ? 1 : smaller(ceil_div(wanted, row_blocks), ceil_div(b.strips, 4));
    if (pool.size() == 1) column_parts = 1;
    pool.parallel_for(row_blocks * column_parts,
                      [&](index_t task) { compute_rows(task / column_parts, task % column_parts); });
  }

  struct panel_lines {
    patch_line line[std::size_t{shape::max_rows}];
    index_t to[std::size_t{shape::max_rows}];  ///< of the result
    index_t count;
    bool dense;  ///< results lie row_length apart
  };
  static_assert(segment_rows <= shape::max_rows);

  void compute_rows(index_t block, index_t part) const {
    const index_t r0 = block * panels_per_task * panel_rows, r1 = smaller(r0 + panels_per_task * panel_rows, rows);
    const index_t s0 = share_begin(b.strips, column_parts, part), s1 = share_begin(b.strips, column_parts, part + 1);
    if (in_place) return compute_in_place(r0, r1, s0, s1);
    const index_t panels = ceil_div(r1 - r0, panel_rows);
    panel_lines lines[std::size_t{max_panels}];
    patch_walk<T> walk(a, r0);
    for (index_t p = 0; p < panels; ++p) find_lines(walk, smaller(r1 - r0 - p * panel_rows, panel_rows), lines[p]);
    const index_t panel_size = b.k_block * panel_rows + shape::lanes;
    T* const packed = scratch<T>(1, static_cast<std::size_t>((panels + 1) * panel_size));
    T* const stage = packed + panels * panel_size;
    const index_t strip_bytes = b.k_block * shape::max_columns * static_cast<index_t>(sizeof(T));
    const index_t chunk = b.k_block > 0 ? ceil_div(2 * quarter_of_l2(), strip_bytes) : b.strips;
    for (index_t k = 0; k < b.blocks; ++k)
      for (index_t s = s0; s < s1; s += chunk)
        for (index_t p = 0; p < panels; ++p) {
          T* const panel = packed + p * panel_size;
          const panel_lines& of = lines[p];
          if (s == s0) pack_patch_panel(a, of.line, of.count, padded(of.count), b.k_begin(k), b.k_end(k), panel, stage);
          multiply_panel(panel, of, k, s, smaller(s + chunk, s1));
        }
  }

  static index_t padded(index_t count) { return (count + 1) / 2 * 2; }

  void find_lines(patch_walk<T>& walk, index_t count, panel_lines& lines) const {
    lines.count = count;
    lines.dense = true;
    for (index_t i = 0; i < count; ++i, walk.skip(1)) {
      lines.line[i] = walk.line();
      index_t& to = lines.to[i];
      to = walk.image() * c.image;
      for (int axis = 0; axis < 3; ++axis) to += walk.at(axis) * c.step[axis];
      lines.dense = lines.dense && (i == 0 || to - lines.to[i - 1] == c.row_length);
    }
  }

  void compute_in_place(index_t r0, index_t r1, index_t s0, index_t s1) const {
    const index_t segments = a.segments(), length = a.segment(), bytes = static_cast<index_t>(sizeof(T));
    T* const stage =
        scratch<T>(1, static_cast<std::size_t>(segment_rows * segments *
                                               (length + ceil_div(static_cast<index_t>(sizeof(const T*)), bytes))));
    auto** const starts = reinterpret_cast<const T**>(stage);
    T* const assembled = reinterpret_cast<T*>(starts + segment_rows * segments);
    patch_walk<T> walk(a, r0);
    panel_lines lines;
    for (index_t r = r0; r < r1; r += segment_rows) {
      find_lines(walk, smaller(r1 - r, segment_rows), lines);
      find_segments(lines, starts, assembled);
      for (index_t s = s0; s < s1; ++s) {
        const auto tile = [&](index_t columns, T* to, index_t ldc, bool adds) {
          if (columns == shape::lanes) multiply_segments<T, 1>(segments, length, starts, b.strip(0, s), to, ldc, adds);
          else multiply_segments<T, 2>(segments, length, starts, b.strip(0, s), to, ldc, adds);
        };
        store_tile(lines, segment_rows, s, add, tile);
      }
      finish_panel(lines, s0, s1);
    }
  }

  void find_segments(const panel_lines& lines, const T** starts, T* assembled) const {
    const index_t segments = a.segments(), length = a.segment();
    for (index_t s = 0; s < segments; ++s) {
      const auto place = a.segment_place(s);
      for (index_t i = 0; i < segment_rows; ++i) {
        *starts = i < lines.count ? a.piece(lines.line[i], place, 0, length, assembled) : zero_line<T>;
        if (*starts++ == assembled) assembled += length;
      }
    }
  }

  void multiply_panel(const T* panel, const panel_lines& of, index_t block, index_t s0, index_t s1) const {
    const index_t width = padded(of.count), k_count = b.k_end(block) - b.k_begin(block);
    const tile_functions<T>& kernels = kernels_for<T>(width);
    for (index_t s = s0; s < s1; ++s)
      store_tile(of, width, s, add || block > 0, [&](index_t columns, T* to, index_t ldc, bool adds) {
        (columns == shape::lanes ? kernels.narrow : kernels.wide)(k_count, panel, b.strip(block, s), to, ldc, adds,
                                                                  panel, 0, nullptr);
      });
    if (block + 1 == b.blocks) finish_panel(of, s0, s1);
  }

  /// Has tile(columns, to, ldc, add) compute `width` rows of a strip, by way of memory beside where not all of them are
  /// results.
  template <class F>
  SINTER_INLINE void store_tile(const panel_lines& of, index_t width, index_t s, bool adds, const F& tile) const {
    const index_t column = s * shape::max_columns, columns = b.strip_columns(s);
    const index_t valid = smaller(columns, b.columns - column);
    T* const to = c.data + first_column + column;
    if (of.dense && of.count == width && valid == columns) return tile(columns, to + of.to[0], c.row_length, adds);
    alignas(64) T whole[std::size_t{shape::max_rows * shape::max_columns}];
    tile(columns, whole, columns, false);
    for (index_t i = 0; i < of.count; ++i) {
      T* const row = to + of.to[i];
      if (adds) add_elements(row, whole + i * columns, valid);
      else copy_elements(row, whole + i * columns, valid);
    }
  }

  void finish_panel(const panel_lines& of, index_t s0, index_t s1) const {
    const index_t c0 = s0 * shape::max_columns, c1 = smaller(s1 * shape::max_columns, b.columns);
    if (finish.bias != nullptr)
      for (index_t i = 0; i < of.count; ++i)
        add_elements(c.data + of.to[i] + first_column + c0, finish.bias + first_column + c0, c1 - c0);
    if (finish.epilogue == nullptr) return;
    const index_t step = of.dense ? of.count : 1;
    for (index_t i = 0; i < of.count; i += step) {
      const index_t row = (c.offset + of.to[i]) / c.row_length;
      finish.epilogue(finish.ctx, row, row + step, first_column + c0, first_column + c1);
    }
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
