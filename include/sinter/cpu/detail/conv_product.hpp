// sinter/cpu/detail/conv_product.hpp: patches times weights, without a matrix of patches.
#pragma once

#include <algorithm>
#include <utility>

#include "sinter/core/weight_forms.hpp"
#include "sinter/cpu/detail/conv_panels.hpp"
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

  index_t rows() const { return taps[0] * taps[1] * taps[2] * channels; }
  /// Calls f(row, where its column 0 is) for all rows (tap, channel).
  template <class F>
  void each_row(const F& f) const {
    index_t row = 0;
    for (index_t t0 = 0; t0 < taps[0]; ++t0)
      for (index_t t1 = 0; t1 < taps[1]; ++t1)
        for (index_t t2 = 0; t2 < taps[2]; ++t2)
          for (index_t c = 0; c < channels; ++c, ++row)
            f(row, data + (t0 * tap_stride[0] + t1 * tap_stride[1] + t2 * tap_stride[2] + c * channel_stride));
  }
  /// With two numbers of how the form is made.
  sinter::detail::form_key key(index_t first = 0, index_t second = 0) const {
    return {data,
            {taps[0], taps[1], taps[2], tap_stride[0], tap_stride[1], tap_stride[2], channels, channel_stride, columns,
             column_stride, first, second}};
  }
};

/// The rows of a weight_source's matrix one after the other.
template <class T>
class weight_rows {
 public:
  explicit weight_rows(const weight_source<T>& w) : size_(w.rows() * w.columns), memory_(size_) {
    T* to = memory_.data();
    w.each_row([&](index_t, const T* from) {
      for (index_t j = 0; j < w.columns; ++j) *to++ = from[j * w.column_stride];
    });
  }

  const T* data() const { return memory_.data(); }
  index_t bytes() const { return size_ * static_cast<index_t>(sizeof(T)); }

 private:
  index_t size_;
  temporary_array<T> memory_;
};

/// How a matrix (k, column) lies in strips of columns as the kernels read them, block by block of k.
template <class T>
struct strip_layout {
  using shape = tile_shape<T>;

  index_t k, columns, strips, blocks, k_block;
  index_t row_width;  ///< columns of all strips, each rounded up to whole packets

  strip_layout(index_t k_count, index_t column_count)
      : k(k_count),
        columns(column_count),
        strips(ceil_div(columns, shape::max_columns)),
        blocks(k > 0 ? ceil_div(k, patch_block<T>) : 1),
        k_block(ceil_div(k, blocks)),
        row_width(strips == 0 ? 0
                              : (strips - 1) * shape::max_columns +
                                    strip_width<T>(columns - (strips - 1) * shape::max_columns)) {}

  index_t k_begin(index_t block) const { return smaller(block * k_block, k); }
  index_t k_end(index_t block) const { return smaller(block * k_block + k_block, k); }
  index_t strip_columns(index_t strip) const { return strip_width<T>(columns - strip * shape::max_columns); }
  /// Where a strip of a block begins.
  index_t strip_begin(index_t block, index_t s) const {
    return k_begin(block) * row_width + s * shape::max_columns * (k_end(block) - k_begin(block));
  }
};

/// A weight_source's matrix, packed as strip_layout says.
template <class T>
class packed_weights : public strip_layout<T> {
 public:
  using layout = strip_layout<T>;
  using layout::columns, layout::k, layout::k_block, layout::strips;
  using layout::k_begin, layout::k_end, layout::strip_begin, layout::strip_columns;
  using typename layout::shape;

  packed_weights(const weight_source<T>& w, thread_pool& pool)
      : layout(w.rows(), w.columns), memory_(layout::row_width * k) {
    // Where taps follow one another in memory, the lines read for one tap serve the next ones.
    constexpr index_t together = 32;
    const index_t parts = ceil_div(w.channels, together);
    pool.parallel_for(k > 0 ? strips * parts : 0, [&](index_t task) {
      const index_t first = task % parts * together;
      pack(w, task / parts, first, smaller(first + together, w.channels));
    });
  }

  const T* strip(index_t block, index_t s) const { return memory_.data() + strip_begin(block, s); }
  index_t bytes() const { return layout::row_width * k * static_cast<index_t>(sizeof(T)); }

 private:
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
            pack_strip(memory_.data() + strip_begin(block, s) + (row - k_begin(block)) * width, width,
                       strip_source<T>{data + at + c * w.channel_stride, w.column_stride, w.channel_stride, valid,
                                       columns - first},
                       end - c);
            c = end;
          }
        }
  }

  temporary_array<T> memory_;
};

/// Packed weights as a product reads them: where they lie, or how some strips of a block are made in memory of the
/// task.
template <class T>
struct weight_strips : strip_layout<T> {
  const T* data = nullptr;
  void (*unpack)(const void* weights, index_t block, index_t s0, index_t s1, T* to) = nullptr;
  const void* weights = nullptr;

  weight_strips(const packed_weights<T>& packed) : strip_layout<T>(packed), data(packed.strip(0, 0)) {}
  template <class Weights>
  explicit weight_strips(const Weights& w) : strip_layout<T>(w), unpack(&Weights::unpack_strips), weights(&w) {}

  /// Strips [s0, s1) of a block, one after the other; what is unpacked stays until the next call.
  const T* read(index_t block, index_t s0, index_t s1) const {
    const index_t begin = this->strip_begin(block, s0);
    if (unpack == nullptr) return data + begin;
    T* const to =
        scratch<T>(0, static_cast<std::size_t>(this->strip_begin(block, s1) - begin + tile_shape<T>::max_columns));
    unpack(weights, block, s0, s1, to);
    return to;
  }
};

/// Can the first elements of a packet be written alone, at little cost?
template <class T>
inline constexpr bool writes_parts_of_packets =
    tile_shape<T>::lanes >= 16 &&
    Eigen::internal::unpacket_traits<typename tile_shape<T>::packet>::masked_store_available;

/// store_tile, with a bias, for tiles of which the last packet of a row has `left` columns.
template <int Packets, class T, class Packet, int... I>
SINTER_INLINE void store_part_of_tile(const Packet* sum, T* c, index_t ldc, bool add, const T* bias, index_t left,
                                      std::integer_sequence<int, I...>) {
  namespace ei = Eigen::internal;
  constexpr int lanes = tile_shape<T>::lanes;
  const auto mask = static_cast<typename ei::unpacket_traits<Packet>::mask_t>((1U << left) - 1);
  const auto load = [mask](const T* from, int packet) {
    return packet == Packets - 1 ? ei::ploadu<Packet>(from + packet * lanes, mask)
                                 : ei::ploadu<Packet>(from + packet * lanes);
  };
  const auto store = [mask](T* to, int packet, const Packet& x) {
    if (packet == Packets - 1) ei::pstoreu(to + packet * lanes, x, mask);
    else ei::pstoreu(to + packet * lanes, x);
  };
  Packet last[std::size_t{Packets}];
  for (int p = 0; p < Packets; ++p) last[p] = bias != nullptr ? load(bias, p) : ei::pset1<Packet>(T(0));
  const auto finish = [&](const Packet& x, int packet) {
    const Packet total = add ? ei::padd(load(c, packet), x) : x;
    store(c, packet, bias != nullptr ? ei::padd(total, last[packet]) : total);
    if (packet == Packets - 1) c += ldc;
  };
  (finish(sum[I], I % Packets), ...);
}

/// C(Rows, columns) = [C +] A(Rows, k) B(k, Packets * lanes) [+ bias]. Row r of A is the elements of all pieces, `step`
/// apart and counted from row[r]; rows of B are `ldb` apart. There are Packets * lanes columns, or fewer where
/// writes_parts_of_packets.
template <class T, int Packets, class Step, class Ldb, int... R, int... I>
void accumulate_pieces(const T* const* row, const patch_piece* piece, index_t pieces, Step step, const T* b, Ldb ldb,
                       T* c, index_t ldc, bool add, const T* bias, [[maybe_unused]] index_t columns,
                       std::integer_sequence<int, R...>, std::integer_sequence<int, I...> all) {
  namespace ei = Eigen::internal;
  using packet = typename tile_shape<T>::packet;
  constexpr int lanes = tile_shape<T>::lanes;
  packet sum[sizeof...(I)];
  ((sum[I] = ei::pset1<packet>(T(0))), ...);
  const T* const a[] = {row[R]...};
  for (const patch_piece* const end = piece + pieces; piece < end; ++piece)
    for (index_t k = piece->offset, k_end = k + piece->count * step; k < k_end; k += step) {
      packet right[std::size_t{Packets}];
      for (int p = 0; p < Packets; ++p) {
        if constexpr (std::is_same_v<Ldb, index_t>) right[p] = ei::ploadu<packet>(b + p * lanes);
        else right[p] = ei::pload<packet>(b + p * lanes);
        read_once(right[p]);
      }
      ((sum[I] = ei::pmadd(ei::pset1<packet>(a[I / Packets][k]), right[I % Packets], sum[I])), ...);
      b += ldb;
    }
  if constexpr (writes_parts_of_packets<T>)
    if (columns < Packets * lanes)
      return store_part_of_tile<Packets>(sum, c, ldc, add, bias, columns - (Packets - 1) * lanes, all);
  if (bias != nullptr) {
    if (add) ((sum[I] = ei::padd(ei::ploadu<packet>(c + I / Packets * ldc + I % Packets * lanes), sum[I])), ...);
    ((sum[I] = ei::padd(sum[I], ei::ploadu<packet>(bias + I % Packets * lanes))), ...);
    add = false;
  }
  store_tile<Packets>(sum, c, ldc, add, all);
}

template <class T, int Packets>
void multiply_pieces(const T* const* row, const patch_piece* piece, index_t pieces, const T* b, T* c, index_t ldc,
                     bool add, const T* bias, index_t columns) {
  accumulate_pieces<T, Packets>(row, piece, pieces, std::integral_constant<index_t, 1>{}, b,
                                std::integral_constant<index_t, Packets * tile_shape<T>::lanes>{}, c, ldc, add, bias,
                                columns, std::make_integer_sequence<int, segment_rows>{},
                                std::make_integer_sequence<int, segment_rows * Packets>{});
}
/// The same of panels that follow one another in a line of pixels and in C: row r of A begins at x + r * along.
template <class T, int Packets>
SINTER_KERNEL void multiply_line(const T* x, index_t along, index_t panels, const patch_piece* piece, index_t pieces,
                                 const T* b, T* c, index_t ldc, bool add, const T* bias, index_t columns) {
  for (; panels > 0; --panels, c += segment_rows * ldc) {
    const T* row[std::size_t{segment_rows}];
    for (index_t r = 0; r < segment_rows; ++r, x += along) row[r] = x;
    multiply_pieces<T, Packets>(row, piece, pieces, b, c, ldc, add, bias, columns);
  }
}
/// The same of some rows, with elements `step` and rows of B `ldb` apart, of all columns and without a bias.
template <class T, int Packets, int Rows, class Ldb>
void multiply_spaced_pieces(const T* const* row, const patch_piece* piece, index_t pieces, index_t step, const T* b,
                            Ldb ldb, T* c, index_t ldc, bool add) {
  accumulate_pieces<T, Packets>(row, piece, pieces, step, b, ldb, c, ldc, add, nullptr, Packets * tile_shape<T>::lanes,
                                std::make_integer_sequence<int, Rows>{},
                                std::make_integer_sequence<int, Rows * Packets>{});
}

/// result(row, column) = [result +] patches(row, k) weights(k, column), for columns [first, first + columns) of it.
///
/// A task takes a block of rows. The patches are not packed: the kernel reads them in the image, and a panel of a few
/// rows stays in L1 while it meets the strips of a chunk of weights in L2. An element is one chain of multiply-adds
/// within a block of k, and blocks are added in order.
template <class T>
struct patch_product {
  using shape = tile_shape<T>;
  static constexpr index_t rows_per_task = 16 * segment_rows;
  static constexpr index_t fewest_strips = 4, fewest_panels = 4;         ///< of a task, where there are too few tasks
  static constexpr index_t panels_at_once = 4, elements_at_once = 4096;  ///< finished together, while they are in L1
  static constexpr index_t elements_copied = 6144;                       ///< of planes, by a task

  patches<T>& a;
  const weight_strips<T> b;
  const result_rows<T>& c;
  index_t first_column;
  bool add;
  const conv_finish<T>& finish;
  index_t rows, row_blocks = 1, column_parts = 1;
  index_t unit = segment_rows;  ///< what blocks of rows are multiples of

  patch_product(patches<T>& image, const weight_strips<T>& weights, const result_rows<T>& result, index_t first,
                bool accumulate, const conv_finish<T>& last)
      : a(image), b(weights), c(result), first_column(first), add(accumulate), finish(last), rows(image.rows()) {}

  void compute(thread_pool& pool) {
    const index_t threads = pool.size(), wanted = 3 * threads;
    if (const index_t lines = a.are_planes() ? rows_of_planes() : 0; lines > 0)
      if (threads == 1 || ceil_div(rows, lines) >= wanted) unit = lines;
    const index_t panels = ceil_div(rows, unit);
    row_blocks = ceil_div(rows, std::max(unit, rows_per_task));
    // Where there are too few blocks of rows for all threads, they share columns too.
    column_parts = threads == 1 || row_blocks >= wanted
                       ? 1
                       : smaller(ceil_div(wanted, row_blocks), ceil_div(b.strips, fewest_strips));
    const auto is_uneven = [&] {
      return row_blocks * column_parts < wanted && row_blocks * column_parts % threads != 0;
    };
    while (is_uneven() && row_blocks * fewest_panels < panels) ++row_blocks;
    const pixel_box box = a.pixels_met(first_row(row_blocks / 2), first_row(row_blocks / 2 + 1));
    const whole_image<T> whole(a, a.is_made_often(box, row_blocks * column_parts), pool);
    pool.parallel_for(row_blocks * column_parts,
                      [&](index_t task) { compute_rows(task / column_parts, task % column_parts); });
  }

 private:
  index_t first_row(index_t block) const {
    return smaller(share_begin(ceil_div(rows, unit), row_blocks, block) * unit, rows);
  }
  /// Whole lines of pixels, as many as leave what a task copies of the planes in L1; 0 where lines are too long.
  index_t rows_of_planes() const {
    const conv_axis &down = a.axes[1], &across = a.axes[2];
    if (across.out > rows_per_task || rows == 0) return 0;
    const index_t width = (across.out - 1) * across.step + (across.taps - 1) * across.dilation + 1;
    const index_t height = elements_copied / (a.axes[0].in * width) - (down.taps - 1) * down.dilation;
    return across.out * smaller(std::max(height / down.step, rows_per_task / across.out), down.out);
  }

  void compute_rows(index_t row_block, index_t part) const {
    const index_t r0 = first_row(row_block), r1 = first_row(row_block + 1);
    if (!a.are_planes()) return compute_rows_of(a.holding(a.pixels_met(r0, r1)), r0, r1, part);
    for (index_t r = r0, end = r0; r < r1; r = end) {
      end = smaller(r1, (r / a.pixels() + 1) * a.pixels());
      compute_rows_of(a.with_zeros_around(r, end), r, end, part);
    }
  }
  void compute_rows_of(const patches<T>& here, index_t r0, index_t r1, index_t part) const {
    patch_walk<T> walk(here, r0);
    for (index_t r = r0; r < r1; r += rows_per_task) {
      patch_panel panels[std::size_t{rows_per_task / segment_rows + 1}];
      patch_panel* end = panels;
      for (index_t i = r; i < smaller(r + rows_per_task, r1); i += segment_rows)
        find_lines(walk, smaller(r1 - i, segment_rows), c, *end++);
      compute_panels(here, panels, gather_outside(panels, end), part);
    }
  }
  void compute_panels(const patches<T>& here, const patch_panel* panels, const patch_panel* end, index_t part) const {
    const index_t s0 = share_begin(b.strips, column_parts, part), s1 = share_begin(b.strips, column_parts, part + 1);
    // The pieces of a block of k, and room for rows that are copied because they reach beyond the image.
    static_assert(sizeof(patch_piece) % sizeof(T) == 0);
    const index_t head = a.most_pieces(b.k_block) * static_cast<index_t>(sizeof(patch_piece) / sizeof(T));
    T* const memory = scratch<T>(1, static_cast<std::size_t>(head + segment_rows * b.k_block));
    auto* const pieces = reinterpret_cast<patch_piece*>(memory);
    const index_t strip_bytes = b.k_block * shape::max_columns * static_cast<index_t>(sizeof(T));
    const index_t chunk = b.k_block > 0 ? ceil_div(2 * quarter_of_l2(), strip_bytes) : b.strips;
    for (index_t k = 0; k < b.blocks; ++k) {
      const index_t count = here.cut(b.k_begin(k), b.k_end(k), pieces);
      const patch_piece copied{{}, 0, b.k_end(k) - b.k_begin(k), 0};
      for (index_t s = s0; s < s1; s += chunk) {
        const index_t s_end = smaller(s + chunk, s1);
        const T* const strips = b.read(k, s, s_end);
        const index_t c0 = s * shape::max_columns, c1 = smaller(s_end * shape::max_columns, b.columns);
        const index_t panels_full = std::max(panels_at_once, elements_at_once / (segment_rows * (c1 - c0)));
        const patch_panel* finished = panels;
        const bool is_one_strip = s + 1 == s_end && fills_packets(s);
        for (const patch_panel* p = panels; p < end;) {
          const patch_panel* next = p + 1;
          if (is_one_strip && p->in_line) {
            const bool is_cut = k + 1 == b.blocks && end - finished > panels_full;
            next = line_end(here, p, is_cut ? finished + panels_full : end);
            multiply_panels(here, p, next - p, pieces, count, strips, k, s);
          } else {
            const T* rows_at[std::size_t{segment_rows}] = {};
            if (p->in_line)
              for (index_t i = 0; i < segment_rows; ++i) rows_at[i] = here.data + (p->base[0] + i * here.along());
            else if (p->whole)
              for (index_t i = 0; i < segment_rows; ++i) rows_at[i] = here.data + p->base[i];
            else if (!p->outside) copy_rows(here, *p, pieces, count, copied.count, memory + head, rows_at);
            const index_t pieces_here = p->outside ? 0 : p->whole ? count : 1;
            multiply_panel(*p, rows_at, p->whole ? pieces : &copied, pieces_here, strips, k, s, s_end);
          }
          p = next;
          if (k + 1 < b.blocks || (p < end && p - finished < panels_full)) continue;
          finish_panels(finished, p, c0, c1);
          finished = p;
        }
      }
    }
  }

  /// Copies the rows of a panel, `size` elements each, with zeros where they are outside of the image.
  void copy_rows(const patches<T>& here, const patch_panel& p, const patch_piece* pieces, index_t count, index_t size,
                 T* to, const T** rows_at) const {
    for (index_t i = 0; i < segment_rows; ++i) rows_at[i] = i < p.count ? to + i * size : to;
    for (index_t i = 0; i < p.count; ++i)
      for (const patch_piece* piece = pieces; piece < pieces + count; to += piece->count, ++piece) {
        const T* const from = here.elements(p.line[i], *piece, to);
        if (from != to) copy_elements(to, from, piece->count);
      }
  }

  index_t valid_columns(index_t s) const { return smaller(b.strip_columns(s), b.columns - s * shape::max_columns); }
  bool fills_packets(index_t s) const { return writes_parts_of_packets<T> || valid_columns(s) == b.strip_columns(s); }
  /// The bias from a column on, which the last block adds; null where there is none.
  const T* bias_at(index_t column, index_t block) const {
    return finish.bias != nullptr && block + 1 == b.blocks ? finish.bias + first_column + column : nullptr;
  }

  /// The end of the run of panels from p on that follow one another in a line of pixels and in the result; at most
  /// `end`.
  const patch_panel* line_end(const patches<T>& here, const patch_panel* p, const patch_panel* end) const {
    const index_t along = segment_rows * here.along(), rows_on = segment_rows * c.row_length;
    for (++p; p < end && p->in_line; ++p)
      if (p->base[0] != p[-1].base[0] + along || p->to[0] != p[-1].to[0] + rows_on) break;
    return p;
  }
  void multiply_panels(const patches<T>& here, const patch_panel* p, index_t panels, const patch_piece* pieces,
                       index_t count, const T* strip, index_t block, index_t s) const {
    const index_t column = s * shape::max_columns;
    const auto tile = b.strip_columns(s) == shape::lanes ? &multiply_line<T, 1> : &multiply_line<T, 2>;
    tile(here.data + p->base[0], here.along(), panels, pieces, count, strip, c.data + first_column + column + p->to[0],
         c.row_length, add || block > 0, bias_at(column, block), valid_columns(s));
  }
  void multiply_panel(const patch_panel& p, const T* const* rows_at, const patch_piece* pieces, index_t count,
                      const T* strip, index_t block, index_t s0, index_t s1) const {
    const bool adds = add || block > 0;
    const index_t strip_size = shape::max_columns * (b.k_end(block) - b.k_begin(block));
    for (index_t s = s0; s < s1; ++s, strip += strip_size) {
      const index_t column = s * shape::max_columns, columns = b.strip_columns(s), valid = valid_columns(s);
      const auto tile = columns == shape::lanes ? &multiply_pieces<T, 1> : &multiply_pieces<T, 2>;
      const T* const bias = bias_at(column, block);
      T* const to = c.data + first_column + column;
      if (p.dense && fills_packets(s)) {
        tile(rows_at, pieces, count, strip, to + p.to[0], c.row_length, adds, bias, valid);
        continue;
      }
      alignas(64) T whole[std::size_t{segment_rows * shape::max_columns}];
      tile(rows_at, pieces, count, strip, whole, columns, false, nullptr, columns);
      for (index_t i = 0; i < p.count; ++i) {
        T* const row = to + (p.dense ? p.to[0] + i * c.row_length : p.to[i]);
        if (adds) add_elements(row, whole + i * columns, valid);
        else copy_elements(row, whole + i * columns, valid);
        if (bias != nullptr) add_elements(row, bias, valid);
      }
    }
  }

  /// The epilogue of columns [c0, c1), of as many rows at once as follow one another.
  void finish_panels(const patch_panel* begin, const patch_panel* end, index_t c0, index_t c1) const {
    if (!finish.after) return;
    finished_rows<T> rows_of{finish.after, c, first_column + c0, first_column + c1};
    for (const patch_panel* p = begin; p < end; ++p) {
      const index_t count = p->dense ? p->count : 1;
      for (index_t i = 0; i < p->count; i += count) rows_of.add(p->to[i], count);
    }
    rows_of.run();
  }
};

}  // namespace sinter::cpu_impl::detail

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
