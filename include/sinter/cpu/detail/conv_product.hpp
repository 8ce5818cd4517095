// sinter/cpu/detail/conv_product.hpp: patches times weights, without a matrix of patches.
#pragma once

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

  packed_weights(const weight_source<T>& w, thread_pool& pool)
      : k(w.taps[0] * w.taps[1] * w.taps[2] * w.channels),
        columns(w.columns),
        strips(ceil_div(columns, shape::max_columns)),
        blocks(k > 0 ? ceil_div(k, patch_block<T>) : 1),
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
/// cache holds, and multiplies a panel while it is in L1. An element is one chain of multiply-adds within a block of k,
/// and blocks are added in order.
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
  index_t rows, panels_per_task, column_parts;

  patch_product(const patches<T>& image, const packed_weights<T>& weights, const result_rows<T>& result, index_t first,
                bool accumulate, const conv_finish<T>& last)
      : a(image), b(weights), c(result), first_column(first), add(accumulate), finish(last), rows(image.rows()) {}

  void compute(thread_pool& pool) {
    if (rows == 0 || b.columns == 0) return;
    const index_t panel_bytes = (b.k_block + 1) * shape::max_rows * static_cast<index_t>(sizeof(T));
    const index_t fitting = quarter_of_l2() / panel_bytes;
    panels_per_task = fitting < 1 ? 1 : smaller(fitting, max_panels);
    const index_t row_blocks = ceil_div(rows, panels_per_task * shape::max_rows);
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

  void compute_rows(index_t block, index_t part) const {
    const index_t r0 = block * panels_per_task * shape::max_rows;
    const index_t r1 = smaller(r0 + panels_per_task * shape::max_rows, rows);
    const index_t s0 = share_begin(b.strips, column_parts, part), s1 = share_begin(b.strips, column_parts, part + 1);
    const index_t panels = ceil_div(r1 - r0, shape::max_rows);
    panel_lines lines[std::size_t{max_panels}];
    find_lines(r0, r1, lines);
    const index_t panel_size = b.k_block * shape::max_rows + shape::lanes;
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
          compute_panel(panel, of, k, s, smaller(s + chunk, s1));
        }
  }

  static index_t padded(index_t count) { return (count + 1) / 2 * 2; }

  void find_lines(index_t r0, index_t r1, panel_lines* lines) const {
    patch_walk<T> walk(a, r0);
    for (index_t r = r0; r < r1; ++lines) {
      lines->count = smaller(r1 - r, shape::max_rows);
      lines->dense = true;
      for (index_t i = 0; i < lines->count; ++i, ++r, walk.skip(1)) {
        lines->line[i] = walk.line();
        index_t& to = lines->to[i];
        to = walk.image() * c.image;
        for (int axis = 0; axis < 3; ++axis) to += walk.at(axis) * c.step[axis];
        lines->dense = lines->dense && (i == 0 || to - lines->to[i - 1] == c.row_length);
      }
    }
  }

  void compute_panel(const T* panel, const panel_lines& of, index_t block, index_t s0, index_t s1) const {
    const index_t width = padded(of.count), k_count = b.k_end(block) - b.k_begin(block);
    const bool adds = add || block > 0;
    const tile_functions<T>& kernels = kernels_for<T>(width);
    for (index_t s = s0; s < s1; ++s) {
      const index_t column = s * shape::max_columns, columns = b.strip_columns(s);
      const index_t valid = smaller(columns, b.columns - column);
      const tile_function<T> tile = columns == shape::lanes ? kernels.narrow : kernels.wide;
      T* const to = c.data + first_column + column;
      if (of.dense && of.count == width && valid == columns) {
        tile(k_count, panel, b.strip(block, s), to + of.to[0], c.row_length, adds, panel, 0, nullptr);
      } else {
        alignas(64) T whole[std::size_t{shape::max_rows * shape::max_columns}];
        tile(k_count, panel, b.strip(block, s), whole, columns, false, panel, 0, nullptr);
        for (index_t i = 0; i < of.count; ++i) {
          T* const row = to + of.to[i];
          for (index_t j = 0; j < valid; ++j) row[j] = adds ? row[j] + whole[i * columns + j] : whole[i * columns + j];
        }
      }
    }
    if (block + 1 == b.blocks) finish_panel(of, s0 * shape::max_columns, smaller(s1 * shape::max_columns, b.columns));
  }

  void finish_panel(const panel_lines& of, index_t c0, index_t c1) const {
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
