// sinter/cpu/pooling.hpp: pooling on the host, a vector of channels at a time.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/adaptive_pool.hpp"

namespace sinter::cpu_impl {

/// Forward along the axes, looked up instead of computed for each pixel.
struct pool_windows {
  struct window {
    index_t at;       ///< of the first tap that meets an element of x, in elements
    index_t count;    ///< of those taps
    index_t tap;      ///< what the first adds to the number of a tap
    index_t counted;  ///< see pool_axis
  };
  std::vector<window> of_result[3];
  index_t out[3], step[3], tap_step[3];  ///< results; from one tap to the next, in elements of x and in numbers
  index_t image;                         ///< elements of x in an image

  explicit pool_windows(const ops::pool_extents& e, bool padding_counts = false);
  pool_windows(const pool_windows&) = delete;
  pool_windows& operator=(const pool_windows&) = delete;
  ~pool_windows();
  const window& at(int axis, index_t o) const { return of_result[axis][static_cast<std::size_t>(o)]; }
};

/// Backward along the axes: the results whose windows have an element of x.
struct pool_sources {
  struct source {
    index_t at;   ///< the result, in elements of y
    index_t tap;  ///< what the tap at the element adds to the number of a tap
    double part;  ///< 1 / how many elements the result is the average of
  };
  std::vector<source> sources[3];
  std::vector<index_t> begin[3];              ///< of an element's sources
  index_t in[3], most[3] = {0, 0, 0}, image;  ///< `most` sources of an element; image: elements of y in one

  explicit pool_sources(const ops::pool_extents& e, bool with_parts = false, bool padding_counts = false);
  pool_sources(const pool_sources&) = delete;
  pool_sources& operator=(const pool_sources&) = delete;
  ~pool_sources();
  const source* of(int axis, index_t i) const {
    return sources[axis].data() + begin[axis][static_cast<std::size_t>(i)];
  }
};

/// A run of pixels of one row.
struct pixel_run {
  index_t first, image, at[3];  ///< number and coordinates of the first
  index_t count;
  index_t channel, channel_end;
};

/// Calls f(run) for runs that cover all pixels and channels, and after(first pixel, end, first channel, end) for parts
/// that are complete. A pixel takes about `work` operations for each channel.
template <class F, class After>
void for_pixels(index_t batch, const index_t (&extent)[3], index_t channels, index_t work, thread_pool& pool,
                const F& f, const After& after) {
  constexpr index_t wanted = 32768, few_pixels = 32, channel_block = 64;
  const index_t pixels = batch * extent[0] * extent[1] * extent[2];
  if (pixels * channels == 0) return;
  const index_t block = pixels < few_pixels && channels > channel_block ? channel_block : channels;
  const index_t blocks = (channels + block - 1) / block;
  const index_t each = std::max<index_t>(wanted / (block * std::min(work + 1, wanted)), 1);
  pool.parallel_for((pixels + each - 1) / each * blocks, [&](index_t task) {
    const index_t begin = task / blocks * each, end = std::min(begin + each, pixels);
    pixel_run r;
    r.channel = task % blocks * block;
    r.channel_end = std::min(r.channel + block, channels);
    for (r.first = begin; r.first < end; r.first += r.count) {
      r.image = r.first;
      for (int d = 2; d >= 0; --d) {
        r.at[d] = r.image % extent[d];
        r.image /= extent[d];
      }
      r.count = std::min(extent[2] - r.at[2], end - r.first);
      f(r);
    }
    after(begin, end, r.channel, r.channel_end);
  });
}

/// Vectors of L elements side by side, and their numbers.
template <int L, int... I>
struct vectors {
  static constexpr int count = sizeof...(I);
};

/// Calls f(channel, vectors) for the channels from begin to end - 1, as many at once as registers hold.
template <class T, class F>
SINTER_INLINE void for_channel_vectors(index_t begin, index_t end, const F& f) {
  index_t c = begin;
  if constexpr (sizeof(compute_type<T>) == 4)
    for (; c + 4 * lanes <= end; c += 4 * lanes) f(c, vectors<lanes, 0, 1, 2, 3>{});
  for (; c + lanes <= end; c += lanes) f(c, vectors<lanes, 0>{});
  if constexpr (lanes > 4)
    for (; c + 4 <= end; c += 4) f(c, vectors<4, 0>{});
  for (; c < end; ++c) f(c, vectors<1, 0>{});
}

/// Starts to fetch what lies some pixels further on in the row: few processors foresee the steps of windows by
/// themselves.
template <class T>
SINTER_INLINE void fetch_ahead(const T* p, index_t pixel) {
  __builtin_prefetch(p + 8 * pixel);
}

template <int L, class T>
SINTER_INLINE void put_or_add(T* to, math::simd<compute_type<T>, L> value, bool add) {
  math::write(to, add ? math::read<L>(to) + value : value);
}

/// Where the places of the results of max pooling are saved: in bytes, in words, or nowhere.
struct place_memory {
  std::uint8_t* bytes = nullptr;
  std::int32_t* words = nullptr;

  template <class I, int L>
  SINTER_INLINE void put(index_t at, math::simd<I, L> place) const {
    if (words != nullptr) math::cast<std::int32_t>(place).store(words + at);
    else math::cast<std::uint8_t>(place).store(bytes + at);
  }
  /// For a window that meets no element.
  void put_none(index_t at, index_t n) const;
  index_t operator[](index_t at) const {
    if (words != nullptr) return words[at];
    return bytes[at] == ops::no_byte_place ? -1 : index_t{bytes[at]};
  }
};

/// L saved places as lanes of I; bytes with their sign, since g++ 12 widens those alone, and twofold alone, in
/// registers.
template <class I, int L>
SINTER_INLINE math::simd<I, L> read_places(const std::uint8_t* from) {
  const auto bytes = math::simd<std::int8_t, L>::load(reinterpret_cast<const std::int8_t*>(from));
  return math::cast<I>(math::cast<std::int32_t>(math::cast<std::int16_t>(bytes)));
}
template <class I, int L>
SINTER_INLINE math::simd<I, L> read_places(const std::int32_t* from) {
  return math::cast<I>(math::simd<std::int32_t, L>::load(from));
}
/// A number of a tap as read_places() gives it.
template <class I, class Place>
I as_place(index_t tap) {
  return static_cast<I>(static_cast<std::make_signed_t<Place>>(tap));
}

template <bool Saves, class T>
void max_pool_saving(const ops::pool_extents& e, const T* x, T* y, const place_memory& places,
                     const tile_epilogue& after, thread_pool& pool) {
  using C = compute_type<T>;
  using I = math::detail::mask_lane_t<C>;
  constexpr C least = -std::numeric_limits<C>::infinity();
  const pool_windows windows(e);
  const auto compute = [&](const pixel_run& r) {
    const auto &plane = windows.at(0, r.at[0]), &row = windows.at(1, r.at[1]);
    for (index_t pixel = 0; pixel < r.count; ++pixel) {
      const auto& w = windows.at(2, r.at[2] + pixel);
      const index_t to = (r.first + pixel) * e.channels, first_tap = plane.tap + row.tap + w.tap;
      if (plane.count * row.count * w.count == 0) {
        std::fill(y + to + r.channel, y + to + r.channel_end, static_cast<T>(least));
        places.put_none(to + r.channel, r.channel_end - r.channel);
        continue;
      }
      const T* const origin = x + (r.image * windows.image + plane.at + row.at + w.at);
      for_channel_vectors<T>(r.channel, r.channel_end, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
        using values = math::simd<C, L>;
        using numbers = math::simd<I, L>;
        values most[] = {(static_cast<void>(V), values(least))...};
        [[maybe_unused]] numbers place[] = {(static_cast<void>(V), numbers(first_tap))...};
        for (index_t i = 0; i < plane.count; ++i)
          for (index_t j = 0; j < row.count; ++j) {
            const T* from = origin + (i * windows.step[0] + j * windows.step[1] + c);
            [[maybe_unused]] I tap = static_cast<I>(first_tap + i * windows.tap_step[0] + j * windows.tap_step[1]);
            for (index_t k = 0; k < w.count; ++k, from += windows.step[2], ++tap) {
              const auto step = [&](values& best, [[maybe_unused]] numbers& at, int v) SINTER_INLINE_LAMBDA {
                const values value = math::read<L>(from + v * L);
                if constexpr (Saves) {
                  const auto better = math::logical_or(value > best, value != value);
                  best = math::select(better, value, best);
                  at = math::select(better, numbers(tap), at);
                } else {
                  best = math::max(best, value);
                }
              };
              (fetch_ahead(from + V * L, windows.step[2]), ...);
              (step(most[V], place[V], V), ...);
            }
          }
        (math::write(y + to + c + V * L, most[V]), ...);
        if constexpr (Saves) (places.put(to + c + V * L, place[V]), ...);
      });
    }
  };
  for_pixels(e.batch, windows.out, e.channels, e.taps(), pool, compute, after);
}

/// The largest elements of windows, and where they stand if there is memory for it.
template <class T>
void max_pool(const ops::pool_extents& e, const T* x, T* y, const place_memory& places, const tile_epilogue& after,
              thread_pool& pool) {
  if (places.bytes != nullptr || places.words != nullptr) max_pool_saving<true>(e, x, y, places, after, pool);
  else max_pool_saving<false>(e, x, y, places, after, pool);
}

/// Rows of a window are summed up one by one, so that a large one has a small error.
template <class T>
void avg_pool(const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* x, T* y,
              const tile_epilogue& after, thread_pool& pool) {
  using C = compute_type<T>;
  const pool_windows windows(e, divisor.padding_counts);
  const auto compute = [&](const pixel_run& r) {
    const auto &plane = windows.at(0, r.at[0]), &row = windows.at(1, r.at[1]);
    for (index_t pixel = 0; pixel < r.count; ++pixel) {
      const auto& w = windows.at(2, r.at[2] + pixel);
      const index_t by = divisor.number != 0 ? divisor.number : plane.counted * row.counted * w.counted;
      const T* const origin = x + (r.image * windows.image + plane.at + row.at + w.at);
      T* const to = y + (r.first + pixel) * e.channels;
      for_channel_vectors<T>(r.channel, r.channel_end, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
        using values = math::simd<C, L>;
        values sum[] = {(static_cast<void>(V), values(0))...};
        for (index_t i = 0; i < plane.count; ++i)
          for (index_t j = 0; j < row.count; ++j) {
            const T* from = origin + (i * windows.step[0] + j * windows.step[1] + c);
            values part[] = {(static_cast<void>(V), values(0))...};
            for (index_t k = 0; k < w.count; ++k, from += windows.step[2]) {
              (fetch_ahead(from + V * L, windows.step[2]), ...);
              ((part[V] = part[V] + math::read<L>(from + V * L)), ...);
            }
            ((sum[V] = sum[V] + part[V]), ...);
          }
        (math::write(to + c + V * L, sum[V] / values(by)), ...);
      });
    }
  };
  for_pixels(e.batch, windows.out, e.channels, e.taps(), pool, compute, after);
}

/// Gathers gradients: calls add_one(sums of L channels, where these lie in y, number of the tap, part) for every window
/// that has an element of x, always in one order, and writes the sums to dx or adds them to it.
template <class T, class Add>
void gather_gradient(const ops::pool_extents& e, const pool_sources& sources, T* dx, bool add, thread_pool& pool,
                     const Add& add_one) {
  using C = compute_type<T>;
  using source = pool_sources::source;
  const auto compute = [&](const pixel_run& r) {
    constexpr index_t few = 32;
    const index_t most = sources.most[0] * sources.most[1];
    source inside[few];
    const detail::temporary_array<source> outside(most > few ? most : 0);
    source* const rows = most > few ? outside.data() : inside;  // what holds for the whole run
    source* end = rows;
    for (const source* i = sources.of(0, r.at[0]); i != sources.of(0, r.at[0] + 1); ++i)
      for (const source* j = sources.of(1, r.at[1]); j != sources.of(1, r.at[1] + 1); ++j)
        *end++ = {r.image * sources.image + i->at + j->at, i->tap + j->tap, i->part * j->part};
    for (index_t pixel = 0; pixel < r.count; ++pixel) {
      const source *const first = sources.of(2, r.at[2] + pixel), *const last = sources.of(2, r.at[2] + pixel + 1);
      T* const to = dx + (r.first + pixel) * e.channels;
      for_channel_vectors<T>(r.channel, r.channel_end, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
        using values = math::simd<C, L>;
        values sum[] = {(static_cast<void>(V), values(0))...};
        for (const source* row = rows; row != end; ++row)
          for (const source* s = first; s != last; ++s) {
            const index_t at = row->at + s->at + c, tap = row->tap + s->tap;
            const C part = static_cast<C>(row->part * s->part);
            (add_one(sum[V], at + V * L, tap, part), ...);
          }
        (put_or_add<L>(to + c + V * L, sum[V], add), ...);
      });
    }
  };
  const index_t windows = sources.most[0] * sources.most[1] * sources.most[2];
  for_pixels(e.batch, sources.in, e.channels, windows, pool, compute, [](auto...) {});
}

template <class T, class Place>
void max_pool_gradient_at(const ops::pool_extents& e, const T* g, const Place* places, T* dx, bool add,
                          thread_pool& pool) {
  using C = compute_type<T>;
  using I = math::detail::mask_lane_t<C>;
  gather_gradient(
      e, pool_sources(e), dx, add, pool,
      [=, channels = e.channels]<int L>(math::simd<C, L>& sum, index_t at, index_t tap, C) SINTER_INLINE_LAMBDA {
        fetch_ahead(g + at, channels);
        fetch_ahead(places + at, channels);
        const auto is_here = read_places<I, L>(places + at) == math::simd<I, L>(as_place<I, Place>(tap));
        sum = sum + math::select(is_here, math::read<L>(g + at), math::simd<C, L>(0));
      });
}

template <class T>
void max_pool_gradient(const ops::pool_extents& e, const T* g, const place_memory& places, T* dx, bool add,
                       thread_pool& pool) {
  if (places.words != nullptr) max_pool_gradient_at(e, g, places.words, dx, add, pool);
  else max_pool_gradient_at(e, g, places.bytes, dx, add, pool);
}

template <class T>
void avg_pool_gradient(const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* g, T* dx, bool add,
                       thread_pool& pool) {
  using C = compute_type<T>;
  const bool counts = divisor.number == 0;
  const C all = counts ? C(1) : C(1) / static_cast<C>(divisor.number);
  gather_gradient(e, pool_sources(e, counts, divisor.padding_counts), dx, add, pool,
                  [=]<int L>(math::simd<C, L>& sum, index_t at, index_t, C part) SINTER_INLINE_LAMBDA {
                    sum = math::fma(math::read<L>(g + at), math::simd<C, L>(part * all), sum);
                  });
}

/// Where results of max pooling stand in their planes of x; -1 for a window that met none.
SINTER_SHARED void find_places(const ops::pool_extents& e, const place_memory& places, std::int64_t* indices,
                               thread_pool& pool);

template <device D>
place_memory memory_of(const ops::pool_places<D>& p) {
  place_memory m;
  if (p.bytes.defined()) m.bytes = p.bytes.data();
  if (p.words.defined()) m.words = p.words.data();
  return m;
}

#if SINTER_DEFINES

SINTER_SHARED pool_windows::pool_windows(const ops::pool_extents& e, bool padding_counts) : image(e.channels) {
  index_t taps = 1;
  for (int d = 2; d >= 0; --d) {
    const ops::pool_axis& a = e.axis[d];
    out[d] = a.out;
    step[d] = a.dilation * image;
    tap_step[d] = taps;
    for (index_t o = 0; o < a.out; ++o) {
      const ops::pool_range inside = a.taps(o);
      of_result[d].push_back({(a.start(o) + inside.begin * a.dilation) * image, inside.size(), inside.begin * taps,
                              a.counted(o, padding_counts)});
    }
    image *= a.in;
    taps *= a.kernel;
  }
}
SINTER_SHARED pool_windows::~pool_windows() = default;

SINTER_SHARED pool_sources::pool_sources(const ops::pool_extents& e, bool with_parts, bool padding_counts)
    : image(e.channels) {
  index_t taps = 1;
  for (int d = 2; d >= 0; --d) {
    const ops::pool_axis& a = e.axis[d];
    in[d] = a.in;
    begin[d].push_back(0);
    for (index_t i = 0; i < a.in; ++i) {
      const ops::pool_range results = a.results(i);
      for (index_t o = results.begin; o < results.end; ++o)
        if (const index_t tap = a.tap_at(o, i); tap >= 0)
          sources[d].push_back(
              {o * image, tap * taps, with_parts ? 1 / static_cast<double>(a.counted(o, padding_counts)) : 1.0});
      begin[d].push_back(static_cast<index_t>(sources[d].size()));
      most[d] = std::max(most[d], begin[d].back() - begin[d][static_cast<std::size_t>(i)]);
    }
    image *= a.out;
    taps *= a.kernel;
  }
}
SINTER_SHARED pool_sources::~pool_sources() = default;

SINTER_SHARED void place_memory::put_none(index_t at, index_t n) const {
  if (words != nullptr) std::fill_n(words + at, n, -1);
  else if (bytes != nullptr) std::fill_n(bytes + at, n, static_cast<std::uint8_t>(ops::no_byte_place));
}

SINTER_SHARED void find_places(const ops::pool_extents& e, const place_memory& places, std::int64_t* indices,
                               thread_pool& pool) {
  const index_t out[3] = {e.axis[0].out, e.axis[1].out, e.axis[2].out};
  const auto compute = [&](const pixel_run& r) {
    index_t o[3] = {r.at[0], r.at[1], r.at[2]};
    for (index_t pixel = 0; pixel < r.count; ++pixel, ++o[2])
      for (index_t c = r.channel; c < r.channel_end; ++c) {
        const index_t at = (r.first + pixel) * e.channels + c, place = places[at];
        indices[at] = place < 0 ? -1 : e.place_in_plane(o, place);
      }
  };
  for_pixels(e.batch, out, e.channels, 8, pool, compute, [](auto...) {});
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <int N, class Window, device D>
  requires is_cpu_v<D>
struct kernels<ops::max_pool_op<N, Window>, D> {
  using op_type = ops::max_pool_op<N, Window>;

  template <class T, class Epilogue>
  static ops::pool_places<D> forward(const op_type& op, const tensor<T, N + 2, D>& y, const Epilogue* after,
                                     const tensor<T, N + 2, D>& x) {
    const auto e = op.extents_of(x.shape(), y.shape());
    const auto places = op.template new_places<D>(y.numel(), e.taps());
    cpu_impl::max_pool<T>(e, x.data(), y.data(), cpu_impl::memory_of(places), cpu_impl::tiles_of(after),
                          backend<D>::pool());
    return places;
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    const auto e = op.extents_of(dx.to.shape(), g.shape());
    using T = element_of<decltype(g)>;
    cpu_impl::max_pool_gradient<T>(e, g.data(), cpu_impl::memory_of(b.saved), dx.to.data(), dx.add, backend<D>::pool());
  }
  static void find_indices(const op_type& op, const ops::pool_places<D>& places, const extents<N + 2>& x,
                           const tensor<std::int64_t, N + 2, D>& indices) {
    cpu_impl::find_places(op.extents_of(x, indices.shape()), cpu_impl::memory_of(places), indices.data(),
                          backend<D>::pool());
  }
};

template <int N, class Window, device D>
  requires is_cpu_v<D>
struct kernels<ops::avg_pool_op<N, Window>, D> {
  using op_type = ops::avg_pool_op<N, Window>;

  template <class T, class Epilogue>
  static void forward(const op_type& op, const tensor<T, N + 2, D>& y, const Epilogue* after,
                      const tensor<T, N + 2, D>& x) {
    cpu_impl::avg_pool<T>(op.extents_of(x.shape(), y.shape()), op.divisor, x.data(), y.data(),
                          cpu_impl::tiles_of(after), backend<D>::pool());
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    using T = element_of<decltype(g)>;
    cpu_impl::avg_pool_gradient<T>(op.extents_of(dx.to.shape(), g.shape()), op.divisor, g.data(), dx.to.data(), dx.add,
                                   backend<D>::pool());
  }
};

}  // namespace sinter::detail
