// sinter/cpu/gemm.hpp: the matrix product of the host devices, with an epilogue applied to tiles still in cache.
#pragma once

#include <type_traits>

#include "sinter/core/types.hpp"
#include "sinter/cpu/detail/gemm_kernel.hpp"
#include "sinter/cpu/detail/gemm_pack.hpp"
#include "sinter/cpu/detail/gemm_scratch.hpp"
#include "sinter/cpu/pool.hpp"

namespace sinter::cpu_impl {

/// C(m,n) = A(m,k) B(k,n), or C += A B where `accumulate` is set. A and B have any strides, negative ones included; C is
/// row-major with row stride `ldc` and overlaps neither. `epilogue(ctx, r0, r1, c0, c1)`, if not null, is called once
/// for every element of C, on complete tiles [r0, r1) x [c0, c1), by the thread which finished them. It must not call
/// `gemm`.
template <class T>
struct gemm_args {
  index_t m, n, k;
  const T* a;
  index_t a_row, a_col;
  const T* b;
  index_t b_row, b_col;
  T* c;
  index_t ldc;
  bool accumulate;
  void (*epilogue)(void* ctx, index_t r0, index_t r1, index_t c0, index_t c1);
  void* ctx;
};

namespace detail {

/// `count` things in `parts` shares as equal as can be: the first of share `part`.
constexpr index_t share_begin(index_t count, index_t parts, index_t part) {
  return count / parts * part + (part < count % parts ? part : count % parts);
}

constexpr index_t ceil_div(index_t a, index_t b) { return (a + b - 1) / b; }

/// Runs the tasks of a product on the pool, or here if it is too small to share.
template <class T, class F>
void run_tasks(const gemm_args<T>& args, thread_pool& pool, index_t tasks, F&& f) {
  constexpr double least_products = 1e6;
  if (static_cast<double>(args.m) * static_cast<double>(args.n) * static_cast<double>(args.k) < least_products)
    for (index_t task = 0; task < tasks; ++task) f(task);
  else
    pool.parallel_for(tasks, f);
}

// Blocks of k are a function of k alone, and within a block every element of C is one chain of fused multiply-adds over
// rising k, whatever the tile it lies in. So neither the number of threads nor the tiling changes a bit of the result.
template <class T>
struct packed_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_k_block = 2048 / static_cast<index_t>(sizeof(T));
  static constexpr index_t max_k_span = 8 * max_k_block;
  static constexpr index_t max_packed_a = index_t{1} << 22;
  static constexpr index_t strips_per_chunk = 8, panels_per_task = 16;

  const gemm_args<T>& args;
  thread_pool& pool;
  index_t k0 = 0, k1 = 0, m0 = 0, m1 = 0;
  index_t panels = 0, row_groups = 1, chunks = 1;
  T* packed_a = nullptr;

  // The rows of a block fall into panels of an even number of rows, as equal as can be, the last one padded.
  index_t panel_begin(index_t panel) const { return 2 * share_begin(ceil_div(m1 - m0, 2), panels, panel); }

  // A packet of room behind each panel, see pack_across.
  T* panel_data(index_t panel) const { return packed_a + panel_begin(panel) * (k1 - k0) + panel * shape::lanes; }

  void compute() {
    const index_t spans = ceil_div(args.k, max_k_span);
    for (index_t span = 0; span < spans; ++span) {
      k0 = share_begin(args.k, spans, span);
      k1 = share_begin(args.k, spans, span + 1);
      const index_t row_blocks = ceil_div(args.m, max_packed_a / (k1 - k0));
      for (index_t block = 0; block < row_blocks; ++block) {
        m0 = share_begin(args.m, row_blocks, block);
        m1 = share_begin(args.m, row_blocks, block + 1);
        compute_rows();
      }
    }
  }

  void compute_rows() {
    panels = ceil_div(m1 - m0, shape::max_rows);
    const index_t strips = ceil_div(args.n, shape::max_columns), threads = pool.size();
    chunks = ceil_div(strips, strips_per_chunk);
    row_groups = chunks >= threads ? 1 : ceil_div(threads, chunks);
    if (row_groups > panels) row_groups = panels;
    const index_t rows = panel_begin(panels);
    packed_a = scratch<T>(0, static_cast<std::size_t>(rows * (k1 - k0) + panels * shape::lanes));
    run_tasks(args, pool, ceil_div(panels, panels_per_task), [this](index_t task) {
      const index_t begin = task * panels_per_task;
      const index_t end = begin + panels_per_task < panels ? begin + panels_per_task : panels;
      const index_t k_step = args.a_row == 1 ? steps_along : k1 - k0;
      for (index_t k = k0; k < k1; k += k_step)
        for (index_t panel = begin; panel < end; ++panel) pack_panel(panel, k, k + k_step < k1 ? k + k_step : k1);
    });
    run_tasks(args, pool, row_groups * chunks, [this](index_t task) { compute_chunk(task / chunks, task % chunks); });
  }

  void pack_panel(index_t panel, index_t k, index_t k_end) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first;
    const index_t row = m0 + first, left = m1 - row;
    const strip_source<T> s{args.a + row * args.a_row + k * args.a_col, args.a_row, args.a_col,
                            static_cast<int>(left < width ? left : width)};
    pack_strip(panel_data(panel) + (k - k0) * width, static_cast<int>(width), s, k_end - k, args.m - row);
  }

  void compute_chunk(index_t row_group, index_t chunk) {
    const index_t strips = ceil_div(args.n, shape::max_columns);
    const index_t n0 = share_begin(strips, chunks, chunk) * shape::max_columns;
    index_t n1 = share_begin(strips, chunks, chunk + 1) * shape::max_columns;
    if (n1 > args.n) n1 = args.n;
    const index_t blocks = ceil_div(k1 - k0, max_k_block);
    T* const packed_b = scratch<T>(1, static_cast<std::size_t>((max_k_block + 1) * (n1 - n0 + shape::max_columns)));
    for (index_t block = 0; block < blocks; ++block) {
      const index_t kb = share_begin(k1 - k0, blocks, block), ke = share_begin(k1 - k0, blocks, block + 1);
      pack_chunk(packed_b, n0, n1, k0 + kb, k0 + ke);
      const bool add = args.accumulate || k0 + kb > 0, complete = k0 + ke == args.k;
      const index_t begin = share_begin(panels, row_groups, row_group);
      const index_t end = share_begin(panels, row_groups, row_group + 1);
      const walk next = block + 1 < blocks
                            ? walk_over(n0, n1, k0 + ke, k0 + share_begin(k1 - k0, blocks, block + 2), end - begin)
                            : walk{};
      for (index_t panel = begin; panel < end; ++panel)
        compute_panel(panel, packed_b, n0, n1, kb, ke, add, complete, next, end - panel);
    }
  }

  static int strip_width(index_t columns) {
    return columns > shape::lanes ? shape::max_columns : shape::lanes;
  }

  void pack_chunk(T* packed_b, index_t n0, index_t n1, index_t kb, index_t ke) {
    const index_t k_step = args.b_col == 1 ? steps_along : ke - kb;
    for (index_t k = kb; k < ke; k += k_step) {
      const index_t count = k + k_step < ke ? k_step : ke - k;
      for (index_t column = n0; column < n1; column += shape::max_columns) {
        const int width = strip_width(n1 - column);
        const index_t left = n1 - column;
        const strip_source<T> s{args.b + k * args.b_row + column * args.b_col, args.b_col, args.b_row,
                                static_cast<int>(left < width ? left : width)};
        pack_strip(packed_b + (column - n0) * (ke - kb) + (k - kb) * width, width, s, count, args.n - column);
      }
    }
  }

  // What the tiles of one block fetch for the next: B's lines, which are rows or columns, in segments of two packets.
  struct walk {
    const T* first = nullptr;
    index_t segment_step = 0, line_step = 0, segments = 0, lines = 0;
  };

  walk walk_over(index_t n0, index_t n1, index_t kb, index_t ke, index_t) const {
    const T* const first = args.b + kb * args.b_row + n0 * args.b_col;
    constexpr index_t length = 2 * shape::lanes;
    if (args.b_col == 1) return {first, length, args.b_row, ceil_div(n1 - n0, length), ke - kb};
    if (args.b_row == 1) return {first, length, args.b_col, ceil_div(ke - kb, length), n1 - n0};
    return {};
  }

  // The last panels of a block fetch B for the next block; the first tiles of each panel fetch the panel after it.
  fetch_ahead<T> plan_fetch(const walk& next, index_t panels_left, index_t strip, index_t strips, index_t width,
                            index_t k_count, const T* a_next) const {
    const index_t slots = k_count / steps_per_fetch - width, a_tiles = ceil_div(k_count * width, 2 * shape::lanes * (slots > 0 ? slots : 1));
    if (slots > 0 && strip >= a_tiles && next.segments > 0) {
      const index_t tiles_per_segment = ceil_div(next.lines, slots), b_tiles = strips - a_tiles;
      const index_t panels_needed = ceil_div(next.segments * tiles_per_segment, b_tiles);
      const index_t from_end = panels_left - 1 < panels_needed ? panels_needed - panels_left : -1;
      const index_t tile = from_end * b_tiles + strip - a_tiles;
      if (from_end >= 0 && tile < next.segments * tiles_per_segment)
        return {next.first + tile / tiles_per_segment * next.segment_step +
                    tile % tiles_per_segment * slots * next.line_step,
                next.line_step};
    }
    return {a_next + strip * ceil_div(k_count * width, strips), 2 * shape::lanes};
  }

  void compute_panel(index_t panel, const T* packed_b, index_t n0, index_t n1, index_t kb, index_t ke, bool add,
                     bool complete, const walk& next, index_t panels_left) {
    const index_t first = panel_begin(panel), width = panel_begin(panel + 1) - first, row = m0 + first;
    const index_t rows = m1 - row < width ? m1 - row : width;
    const T* const a = panel_data(panel) + kb * width;
    const T* const a_next = panel + 1 < panels ? panel_data(panel + 1) + kb * width : packed_a;
    const index_t strips = ceil_div(n1 - n0, shape::max_columns);
    const tile_functions<T>& kernels = kernels_for<T>(width);
    for (index_t strip = 0; strip < strips; ++strip) {
      const index_t column = n0 + strip * shape::max_columns;
      const int columns = strip_width(n1 - column);
      const T* const b = packed_b + (column - n0) * (ke - kb);
      const tile_function<T> tile = columns == shape::lanes ? kernels.narrow : kernels.wide;
      T* const c = args.c + row * args.ldc + column;
      const fetch_ahead<T> ahead = plan_fetch(next, panels_left, strip, strips, width, ke - kb, a_next);
      if (rows == width && n1 - column >= columns) {
        tile(ke - kb, a, b, c, args.ldc, add, ahead.first, ahead.step);
      } else {
        alignas(64) T whole[shape::max_rows * shape::max_columns];
        tile(ke - kb, a, b, whole, columns, false, ahead.first, ahead.step);
        const index_t valid = n1 - column < columns ? n1 - column : columns;
        for (index_t i = 0; i < rows; ++i)
          for (index_t j = 0; j < valid; ++j) {
            T& element = c[i * args.ldc + j];
            element = add ? element + whole[i * columns + j] : whole[i * columns + j];
          }
      }
    }
    if (complete && args.epilogue != nullptr) args.epilogue(args.ctx, row, row + rows, n0, n1);
  }
};

// out(r, v) = [out +] sum over k of R(r, k) V(k, v), for few v and contiguous rows of R, which are read in place: nothing
// is gained by packing what is used so seldom. V is packed once. Either A is R (few columns), or B is, transposed (few
// rows). The blocks of k depend on the shape only, so the remark above holds here too.
template <class T>
struct in_place_product {
  using shape = tile_shape<T>;
  static constexpr index_t max_vectors = 256, min_k = 64, max_k_block = 2048, packed_elements = (index_t{1} << 20) / sizeof(T);
  static constexpr index_t rows_per_task = 8 * rows_in_place;

  const gemm_args<T>& args;
  thread_pool& pool;
  bool swapped;
  index_t rows, vectors;
  const T *row_data, *vector_data;
  index_t row_stride, vector_stride, vector_k_stride, out_row, out_vector;
  index_t k_block = 0, width = 0;
  T* packed = nullptr;

  in_place_product(const gemm_args<T>& g, thread_pool& p, bool swap)
      : args(g),
        pool(p),
        swapped(swap),
        rows(swap ? g.n : g.m),
        vectors(swap ? g.m : g.n),
        row_data(swap ? g.b : g.a),
        vector_data(swap ? g.a : g.b),
        row_stride(swap ? g.b_col : g.a_row),
        vector_stride(swap ? g.a_row : g.b_col),
        vector_k_stride(swap ? g.a_col : g.b_row),
        out_row(swap ? 1 : g.ldc),
        out_vector(swap ? g.ldc : 1) {}

  static int strip_width(index_t left) { return left > shape::lanes ? shape::max_columns : shape::lanes; }

  void compute() {
    const index_t strips = ceil_div(vectors, shape::max_columns);
    width = (strips - 1) * shape::max_columns + strip_width(vectors - (strips - 1) * shape::max_columns);
    const index_t longest = packed_elements / width < max_k_block ? packed_elements / width : max_k_block;
    const index_t blocks = ceil_div(args.k, longest);
    k_block = ceil_div(args.k, blocks);
    packed = scratch<T>(0, static_cast<std::size_t>(width * args.k));
    run_tasks(args, pool, strips * blocks, [this, strips](index_t task) { pack(task / strips * k_block, task % strips); });
    run_tasks(args, pool, ceil_div(rows, rows_per_task), [this](index_t task) { compute_rows(task * rows_per_task); });
  }

  index_t block_end(index_t k) const { return k + k_block < args.k ? k + k_block : args.k; }

  void pack(index_t k, index_t strip) {
    const index_t first = strip * shape::max_columns, left = vectors - first, count = block_end(k) - k;
    const int columns = strip_width(left);
    const strip_source<T> s{vector_data + first * vector_stride + k * vector_k_stride, vector_stride, vector_k_stride,
                    static_cast<int>(left < columns ? left : columns)};
    pack_strip(packed + k * width + first * count, columns, s, count, left);
  }

  void compute_rows(index_t begin) {
    const index_t end = begin + rows_per_task < rows ? begin + rows_per_task : rows;
    alignas(64) T tile[rows_in_place * shape::max_columns];
    for (index_t k = 0; k < args.k; k = block_end(k)) {
      const index_t count = block_end(k) - k;
      for (index_t row = begin; row < end; row += rows_in_place) {
        const T* lines[rows_in_place];
        const index_t valid = end - row < rows_in_place ? end - row : rows_in_place;
        for (index_t i = 0; i < rows_in_place; ++i)
          lines[i] = row_data + (row + (i < valid ? i : valid - 1)) * row_stride + k;
        for (index_t first = 0; first < vectors; first += shape::max_columns) {
          const T* const right = packed + k * width + first * count;
          const index_t left = vectors - first, columns = strip_width(left);
          if (columns == shape::lanes)
            compute_rows_in_place<T, 1>(count, lines, right, tile);
          else
            compute_rows_in_place<T, 2>(count, lines, right, tile);
          T* const out = args.c + row * out_row + first * out_vector;
          store_tile(tile, columns, out, valid, left < columns ? left : columns, args.accumulate || k > 0);
        }
      }
    }
    if (args.epilogue == nullptr) return;
    if (swapped)
      args.epilogue(args.ctx, 0, args.m, begin, end);
    else
      args.epilogue(args.ctx, begin, end, 0, args.n);
  }

  void store_tile(const T* tile, index_t columns, T* out, index_t valid_rows, index_t valid_columns, bool add) {
    if (swapped && valid_rows == rows_in_place) return store_transposed(tile, columns, out, valid_columns, add);
    for (index_t j = 0; j < valid_columns; ++j)
      for (index_t i = 0; i < valid_rows; ++i) {
        T& element = out[i * out_row + j * out_vector];
        element = add ? element + tile[i * columns + j] : tile[i * columns + j];
      }
  }

  void store_transposed(const T* tile, index_t columns, T* out, index_t valid_columns, bool add) {
    namespace ei = Eigen::internal;
    using half = typename ei::unpacket_traits<typename shape::packet>::half;
    using packet = std::conditional_t<(shape::lanes > rows_in_place), half, typename shape::packet>;
    constexpr int lanes = ei::unpacket_traits<packet>::size;
    static_assert(rows_in_place % lanes == 0);
    for (index_t j = 0; j < valid_columns; j += lanes)
      for (index_t i = 0; i < rows_in_place; i += lanes) {
        ei::PacketBlock<packet, lanes> block;
        for (int line = 0; line < lanes; ++line) block.packet[line] = ei::pload<packet>(tile + (i + line) * columns + j);
        ei::ptranspose(block);
        for (int line = 0; line < lanes && j + line < valid_columns; ++line) {
          T* const to = out + (j + line) * out_vector + i;
          ei::pstoreu(to, add ? ei::padd(ei::ploadu<packet>(to), block.packet[line]) : block.packet[line]);
        }
      }
  }
};

}  // namespace detail

/// Computes the product on the threads of `pool`; the bits of the result do not depend on how many there are.
template <class T>
void gemm(const gemm_args<T>& args, thread_pool& pool) {
  if (args.m <= 0 || args.n <= 0) return;
  if constexpr (std::is_floating_point_v<T>) {
    using in_place = detail::in_place_product<T>;
    if (args.k >= in_place::min_k) {
      if (args.a_col == 1 && args.n <= 32) return in_place(args, pool, false).compute();
      if (args.b_row == 1 && args.m <= in_place::max_vectors) return in_place(args, pool, true).compute();
    }
    if (args.k > 0) return detail::packed_product<T>{args, pool}.compute();
  }
  using word = std::conditional_t<std::is_floating_point_v<T>, T,
                                  std::conditional_t<(sizeof(T) < 8), std::uint32_t, std::uint64_t>>;
  // Integers wrap: their products are taken modulo 2^32 or 2^64.
  pool.parallel_for(args.m, [&args](index_t i) {
    T* const row = args.c + i * args.ldc;
    for (index_t j = 0; j < args.n; ++j) {
      word sum = args.accumulate ? static_cast<word>(row[j]) : word(0);
      for (index_t p = 0; p < args.k; ++p)
        sum += static_cast<word>(args.a[i * args.a_row + p * args.a_col]) *
               static_cast<word>(args.b[p * args.b_row + j * args.b_col]);
      row[j] = static_cast<T>(sum);
    }
    if (args.epilogue != nullptr) args.epilogue(args.ctx, i, i + 1, 0, args.n);
  });
}

}  // namespace sinter::cpu_impl
