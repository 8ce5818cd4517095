// sinter/cpu/pooling.hpp: pooling on the host, a vector of channels at a time.
#pragma once

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/adaptive_pool.hpp"

namespace sinter::cpu_impl {

/// What the axes of a pooling say, looked up instead of computed for each pixel.
struct pool_tables {
  struct window {
    index_t first;  ///< the element of x at the first tap that meets one
    ops::pool_range taps;
    index_t start;
  };
  struct axis {
    std::vector<window> windows;           ///< of each result
    std::vector<ops::pool_range> results;  ///< that each element of x is in reach of
  };
  const ops::pool_extents& e;
  axis axes[3];
  index_t in[3], out[3];

  explicit pool_tables(const ops::pool_extents& extents) : e(extents) {
    for (int d = 0; d < 3; ++d) {
      in[d] = e.axis[d].in;
      out[d] = e.axis[d].out;
      for (index_t o = 0; o < out[d]; ++o) {
        const ops::pool_range taps = e.axis[d].taps(o);
        const index_t start = e.axis[d].start(o);
        axes[d].windows.push_back({start + taps.begin * e.axis[d].dilation, taps, start});
      }
      for (index_t i = 0; i < in[d]; ++i) axes[d].results.push_back(e.axis[d].results(i));
    }
  }
};

/// The taps of one result that meet elements of x.
struct pool_window {
  index_t count[3], step[3];  ///< how many along each axis, and elements of x from one to the next
  index_t at;                 ///< of the first in x
  index_t tap, tap_step[2];   ///< its number, and by how much that grows along the first two axes

  pool_window(const pool_tables& t, index_t n, const index_t (&o)[3]) : at(n), tap(0) {
    index_t stride = t.e.channels;
    for (int d = 2; d >= 0; --d) {
      step[d] = t.e.axis[d].dilation * stride;
      stride *= t.in[d];
    }
    for (int d = 0; d < 3; ++d) {
      const pool_tables::window& w = t.axes[d].windows[static_cast<std::size_t>(o[d])];
      count[d] = w.taps.size();
      at = at * t.in[d] + w.first;
      tap = tap * t.e.axis[d].kernel + w.taps.begin;
    }
    at *= t.e.channels;
    tap_step[1] = t.e.axis[2].kernel;
    tap_step[0] = t.e.axis[1].kernel * tap_step[1];
  }
  bool is_empty() const { return count[0] == 0 || count[1] == 0 || count[2] == 0; }
};

/// Calls f(number, image, coordinates, first channel, end of the channels) for all pixels, and after(first pixel, end,
/// first channel, end) for parts that are complete. A pixel takes about `work` operations for each channel.
template <class F, class After>
void for_pixels(index_t batch, const index_t (&extent)[3], index_t channels, index_t work, thread_pool& pool,
                const F& f, const After& after) {
  constexpr index_t wanted = 32768, few_pixels = 32, channel_block = 64;
  const index_t pixels = batch * extent[0] * extent[1] * extent[2];
  if (pixels * channels == 0) return;
  const index_t block = pixels < few_pixels && channels > channel_block ? channel_block : channels;
  const index_t blocks = (channels + block - 1) / block, each = std::max<index_t>(wanted / (block * (work + 1)), 1);
  pool.parallel_for((pixels + each - 1) / each * blocks, [&](index_t task) {
    const index_t c0 = task % blocks * block, c1 = std::min(c0 + block, channels);
    const index_t begin = task / blocks * each, end = std::min(begin + each, pixels);
    index_t at[3], image = begin;
    for (int d = 2; d >= 0; --d) {
      at[d] = image % extent[d];
      image /= extent[d];
    }
    for (index_t p = begin; p < end; ++p) {
      f(p, image, at, c0, c1);
      int d = 2;
      while (d >= 0 && ++at[d] == extent[d]) at[d--] = 0;
      if (d < 0) ++image;
    }
    after(begin, end, c0, c1);
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
  void put_none(index_t at, index_t n) const {
    if (words != nullptr) std::fill_n(words + at, n, -1);
    else if (bytes != nullptr) std::fill_n(bytes + at, n, static_cast<std::uint8_t>(ops::no_byte_place));
  }
  index_t operator[](index_t at) const {
    if (words != nullptr) return words[at];
    return bytes[at] == ops::no_byte_place ? -1 : index_t{bytes[at]};
  }
};

template <bool Saves, class T, class After>
void max_pool(const ops::pool_extents& e, const T* x, T* y, const place_memory& places, thread_pool& pool,
              const After& after) {
  using C = compute_type<T>;
  using I = math::detail::mask_lane_t<C>;
  constexpr C least = -std::numeric_limits<C>::infinity();
  const pool_tables tables(e);
  const auto compute = [&](index_t p, index_t n, const index_t(&o)[3], index_t c0, index_t c1) {
    const pool_window w(tables, n, o);
    if (w.is_empty()) {
      std::fill(y + p * e.channels + c0, y + p * e.channels + c1, static_cast<T>(least));
      return places.put_none(p * e.channels + c0, c1 - c0);
    }
    for_channel_vectors<T>(c0, c1, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
      using values = math::simd<C, L>;
      using numbers = math::simd<I, L>;
      values most[] = {(static_cast<void>(V), values(least))...};
      [[maybe_unused]] numbers place[] = {(static_cast<void>(V), numbers(w.tap))...};
      for (index_t i = 0; i < w.count[0]; ++i)
        for (index_t j = 0; j < w.count[1]; ++j) {
          const T* from = x + (w.at + i * w.step[0] + j * w.step[1] + c);
          [[maybe_unused]] I tap = static_cast<I>(w.tap + i * w.tap_step[0] + j * w.tap_step[1]);
          for (index_t k = 0; k < w.count[2]; ++k, from += w.step[2], ++tap) {
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
            (step(most[V], place[V], V), ...);
          }
        }
      const index_t to = p * e.channels + c;
      (math::write(y + to + V * L, most[V]), ...);
      if constexpr (Saves) (places.put(to + V * L, place[V]), ...);
    });
  };
  const index_t taps = std::min<index_t>(e.taps(), 1 << 20);
  for_pixels(e.batch, tables.out, e.channels, taps, pool, compute, after);
}

/// Rows of a window are summed up one by one, so that a large one has a small error.
template <class T, class After>
void avg_pool(const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* x, T* y, thread_pool& pool,
              const After& after) {
  using C = compute_type<T>;
  const pool_tables tables(e);
  const auto compute = [&](index_t p, index_t n, const index_t(&o)[3], index_t c0, index_t c1) {
    const pool_window w(tables, n, o);
    const C by = static_cast<C>(divisor.of(e.axis, o));
    for_channel_vectors<T>(c0, c1, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
      using values = math::simd<C, L>;
      values sum[] = {(static_cast<void>(V), values(0))...};
      for (index_t i = 0; i < w.count[0]; ++i)
        for (index_t j = 0; j < w.count[1]; ++j) {
          const T* from = x + (w.at + i * w.step[0] + j * w.step[1] + c);
          values row[] = {(static_cast<void>(V), values(0))...};
          for (index_t k = 0; k < w.count[2]; ++k, from += w.step[2])
            ((row[V] = row[V] + math::read<L>(from + V * L)), ...);
          ((sum[V] = sum[V] + row[V]), ...);
        }
      (math::write(y + (p * e.channels + c + V * L), sum[V] / values(by)), ...);
    });
  };
  const index_t taps = std::min<index_t>(e.taps(), 1 << 20);
  for_pixels(e.batch, tables.out, e.channels, taps, pool, compute, after);
}

/// Calls f(number of the result, coordinates, number of the tap) for the windows that have element i of image n.
template <class F>
SINTER_INLINE void for_windows_with(const pool_tables& t, index_t n, const index_t (&i)[3], const F& f) {
  const auto of_axis = [&](int d) -> const ops::pool_range& {
    return t.axes[d].results[static_cast<std::size_t>(i[d])];
  };
  const auto tap_at = [&](int d, index_t o) {
    const index_t distance = i[d] - t.axes[d].windows[static_cast<std::size_t>(o)].start, by = t.e.axis[d].dilation;
    return by == 1 ? distance : distance % by == 0 ? distance / by : -1;
  };
  index_t o[3], tap[3];
  for (o[0] = of_axis(0).begin; o[0] < of_axis(0).end; ++o[0]) {
    if ((tap[0] = tap_at(0, o[0])) < 0) continue;
    for (o[1] = of_axis(1).begin; o[1] < of_axis(1).end; ++o[1]) {
      if ((tap[1] = tap_at(1, o[1])) < 0) continue;
      for (o[2] = of_axis(2).begin; o[2] < of_axis(2).end; ++o[2]) {
        if ((tap[2] = tap_at(2, o[2])) < 0) continue;
        f(((n * t.out[0] + o[0]) * t.out[1] + o[1]) * t.out[2] + o[2], o, t.e.tap_number(tap));
      }
    }
  }
}

/// About how many windows an element is in.
inline index_t windows_of_element(const ops::pool_extents& e) {
  index_t most = 1;
  for (const ops::pool_axis& a : e.axis)
    most =
        std::min<index_t>(most * (a.is_adaptive ? a.out / a.in + 1 : a.kernel / (a.stride * a.dilation) + 1), 1 << 20);
  return most;
}

/// dx (+)= the gradient g of max pooling: each element gathers from the windows that it is in, always in one order.
template <class T, class Place>
void max_pool_gradient(const ops::pool_extents& e, const T* g, const Place* places, T* dx, bool add,
                       thread_pool& pool) {
  using C = compute_type<T>;
  using I = math::detail::mask_lane_t<C>;
  struct source {
    index_t at;
    I tap;
  };
  const pool_tables tables(e);
  const auto compute = [&](index_t p, index_t n, const index_t(&i)[3], index_t c0, index_t c1) {
    thread_local std::vector<source> sources;
    sources.clear();
    for_windows_with(tables, n, i, [&](index_t result, const index_t(&)[3], index_t tap) {
      sources.push_back({result * e.channels, static_cast<I>(tap)});
    });
    const source *const begin = sources.data(), *const end = begin + sources.size();
    for_channel_vectors<T>(c0, c1, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
      using values = math::simd<C, L>;
      values sum[] = {(static_cast<void>(V), values(0))...};
      for (const source* s = begin; s != end; ++s) {
        const index_t at = s->at + c;
        const auto gathered = [&](int v) SINTER_INLINE_LAMBDA {
          const auto place = math::cast<I>(math::simd<Place, L>::load(places + at + v * L));
          return math::select(place == math::simd<I, L>(s->tap), math::read<L>(g + at + v * L), values(0));
        };
        ((sum[V] = sum[V] + gathered(V)), ...);
      }
      (put_or_add<L>(dx + (p * e.channels + c + V * L), sum[V], add), ...);
    });
  };
  for_pixels(e.batch, tables.in, e.channels, windows_of_element(e), pool, compute, [](auto...) {});
}

/// The same of average pooling.
template <class T>
void avg_pool_gradient(const ops::pool_extents& e, const ops::pool_divisor& divisor, const T* g, T* dx, bool add,
                       thread_pool& pool) {
  using C = compute_type<T>;
  struct source {
    index_t at;
    C part;
  };
  const pool_tables tables(e);
  const auto compute = [&](index_t p, index_t n, const index_t(&i)[3], index_t c0, index_t c1) {
    thread_local std::vector<source> sources;
    sources.clear();
    for_windows_with(tables, n, i, [&](index_t result, const index_t(&o)[3], index_t) {
      sources.push_back({result * e.channels, C(1) / static_cast<C>(divisor.of(e.axis, o))});
    });
    const source *const begin = sources.data(), *const end = begin + sources.size();
    for_channel_vectors<T>(c0, c1, [&]<int L, int... V>(index_t c, vectors<L, V...>) {
      using values = math::simd<C, L>;
      values sum[] = {(static_cast<void>(V), values(0))...};
      for (const source* s = begin; s != end; ++s)
        ((sum[V] = math::fma(math::read<L>(g + s->at + c + V * L), values(s->part), sum[V])), ...);
      (put_or_add<L>(dx + (p * e.channels + c + V * L), sum[V], add), ...);
    });
  };
  for_pixels(e.batch, tables.in, e.channels, windows_of_element(e), pool, compute, [](auto...) {});
}

/// Where results of max pooling stand in their planes of x; -1 for a window that met none.
inline void find_places(const ops::pool_extents& e, const place_memory& places, std::int64_t* indices,
                        thread_pool& pool) {
  const index_t out[3] = {e.axis[0].out, e.axis[1].out, e.axis[2].out};
  const auto compute = [&](index_t p, index_t, const index_t(&o)[3], index_t c0, index_t c1) {
    for (index_t at = p * e.channels + c0; at < p * e.channels + c1; ++at) {
      const index_t place = places[at];
      indices[at] = place < 0 ? -1 : e.place_in_plane(o, place);
    }
  };
  for_pixels(e.batch, out, e.channels, 8, pool, compute, [](auto...) {});
}

template <class Epilogue>
auto tiles_of(const Epilogue* after) {
  return [after](index_t p0, index_t p1, index_t c0, index_t c1) {
    if (after != nullptr) after->tile(p0, p1, c0, c1);
  };
}

template <device D>
place_memory memory_of(const ops::pool_places<D>& p) {
  place_memory m;
  if (p.bytes.defined()) m.bytes = p.bytes.data();
  if (p.words.defined()) m.words = p.words.data();
  return m;
}

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
    const auto to = cpu_impl::memory_of(places);
    const auto finish = cpu_impl::tiles_of(after);
    if (to.bytes != nullptr || to.words != nullptr)
      cpu_impl::max_pool<true>(e, x.data(), y.data(), to, backend<D>::pool(), finish);
    else cpu_impl::max_pool<false>(e, x.data(), y.data(), to, backend<D>::pool(), finish);
    return places;
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    const auto e = op.extents_of(dx.to.shape(), g.shape());
    const auto places = cpu_impl::memory_of(b.saved);
    cpu_impl::thread_pool& pool = backend<D>::pool();
    if (places.words != nullptr) cpu_impl::max_pool_gradient(e, g.data(), places.words, dx.to.data(), dx.add, pool);
    else cpu_impl::max_pool_gradient(e, g.data(), places.bytes, dx.to.data(), dx.add, pool);
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
    cpu_impl::avg_pool(op.extents_of(x.shape(), y.shape()), ops::divisor_of(op), x.data(), y.data(), backend<D>::pool(),
                       cpu_impl::tiles_of(after));
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    cpu_impl::avg_pool_gradient(op.extents_of(dx.to.shape(), g.shape()), ops::divisor_of(op), g.data(), dx.to.data(),
                                dx.add, backend<D>::pool());
  }
};

}  // namespace sinter::detail
