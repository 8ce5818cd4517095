// sinter/cuda/pooling.hpp: pooling on GPUs: a thread for each result, and in backward for each element of x.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/cuda/pixels.hpp"
#include "sinter/ops/adaptive_pool.hpp"

namespace sinter::cuda_impl {

/// Extents of the two sides, as pixel() takes them.
struct pool_sizes {
  index_t in[3], out[3];
  explicit pool_sizes(const ops::pool_extents& e)
      : in{e.axis[0].in, e.axis[1].in, e.axis[2].in}, out{e.axis[0].out, e.axis[1].out, e.axis[2].out} {}
};

/// f(pixel of x, number of the tap) for the taps of result o that meet an element of x, in order.
template <class F>
SINTER_WORD void each_tap_inside(const ops::pool_extents& e, const pool_sizes& sizes, index_t n, const index_t (&o)[3],
                                 const F& f) {
  const ops::pool_range taps[3] = {e.axis[0].taps(o[0]), e.axis[1].taps(o[1]), e.axis[2].taps(o[2])};
  const index_t start[3] = {e.axis[0].start(o[0]), e.axis[1].start(o[1]), e.axis[2].start(o[2])};
  index_t tap[3], in[3];
  for (tap[0] = taps[0].begin; tap[0] < taps[0].end; ++tap[0]) {
    in[0] = start[0] + tap[0] * e.axis[0].dilation;
    for (tap[1] = taps[1].begin; tap[1] < taps[1].end; ++tap[1]) {
      in[1] = start[1] + tap[1] * e.axis[1].dilation;
      for (tap[2] = taps[2].begin; tap[2] < taps[2].end; ++tap[2]) {
        in[2] = start[2] + tap[2] * e.axis[2].dilation;
        f(pixel_number(n, in, sizes.in), e.tap_number(tap));
      }
    }
  }
}

/// f(pixel of the result, its coordinates, number of the tap) for the windows that have element i, in order.
template <class F>
SINTER_WORD void each_window_with(const ops::pool_extents& e, const pool_sizes& sizes, index_t n, const index_t (&i)[3],
                                  const F& f) {
  const ops::pool_range all[3] = {e.axis[0].results(i[0]), e.axis[1].results(i[1]), e.axis[2].results(i[2])};
  index_t o[3], tap[3];
  for (o[0] = all[0].begin; o[0] < all[0].end; ++o[0]) {
    tap[0] = e.axis[0].tap_at(o[0], i[0]);
    if (tap[0] < 0) continue;
    for (o[1] = all[1].begin; o[1] < all[1].end; ++o[1]) {
      tap[1] = e.axis[1].tap_at(o[1], i[1]);
      if (tap[1] < 0) continue;
      for (o[2] = all[2].begin; o[2] < all[2].end; ++o[2]) {
        tap[2] = e.axis[2].tap_at(o[2], i[2]);
        if (tap[2] >= 0) f(pixel_number(n, o, sizes.out), o, e.tap_number(tap));
      }
    }
  }
}

/// Where the places of results are saved: in bytes, in words, or nowhere.
struct pool_place_memory {
  std::uint8_t* bytes;
  std::int32_t* words;

  SINTER_WORD void put(index_t at, index_t place) const {
    if (words != nullptr) words[at] = static_cast<std::int32_t>(place);
    else if (bytes != nullptr) bytes[at] = static_cast<std::uint8_t>(place < 0 ? ops::no_byte_place : place);
  }
  SINTER_WORD index_t get(index_t at) const {
    if (words != nullptr) return words[at];
    return bytes[at] == ops::no_byte_place ? -1 : static_cast<index_t>(bytes[at]);
  }
};

template <class T>
struct max_pool_body {
  ops::pool_extents e;
  pool_sizes sizes;
  const T* x;
  T* y;
  pool_place_memory places;

  SINTER_WORD index_t numel() const { return e.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, sizes.out, e.channels);
      C most = -std::numeric_limits<C>::infinity();
      index_t place = -1;
      each_tap_inside(e, sizes, p.n, p.at, [&](index_t from, index_t tap) {
        const C value = static_cast<C>(x[from * e.channels + p.channel]);
        if (place < 0) place = tap;
        if (value > most || value != value) {
          most = value;
          place = tap;
        }
      });
      y[i] = static_cast<T>(most);
      places.put(i, place);
    });
  }
};

template <class T>
struct max_pool_gradient_body {
  ops::pool_extents e;
  pool_sizes sizes;
  const T* dy;
  pool_place_memory places;
  T* dx;
  bool add;

  SINTER_WORD index_t numel() const { return e.elements(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, sizes.in, e.channels);
      C sum = 0;
      each_window_with(e, sizes, p.n, p.at, [&](index_t from, const index_t(&)[3], index_t tap) {
        const index_t at = from * e.channels + p.channel;
        if (places.get(at) == tap) sum += static_cast<C>(dy[at]);
      });
      put_or_add(dx[i], sum, add);
    });
  }
};

struct pool_indices_body {
  ops::pool_extents e;
  pool_sizes sizes;
  pool_place_memory places;
  std::int64_t* indices;

  SINTER_WORD index_t numel() const { return e.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, sizes.out, e.channels);
      const index_t place = places.get(i);
      indices[i] = place < 0 ? -1 : e.place_in_plane(p.at, place);
    });
  }
};

/// Rows of a window are summed up one by one, as on the host.
template <class T>
struct avg_pool_body {
  ops::pool_extents e;
  pool_sizes sizes;
  ops::pool_divisor divisor;
  const T* x;
  T* y;

  SINTER_WORD index_t numel() const { return e.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, sizes.out, e.channels);
      const index_t last = e.axis[2].taps(p.at[2]).end - 1;
      C sum = 0, row = 0;
      each_tap_inside(e, sizes, p.n, p.at, [&](index_t from, index_t tap) {
        row += static_cast<C>(x[from * e.channels + p.channel]);
        if (tap % e.axis[2].kernel != last) return;
        sum += row;
        row = 0;
      });
      y[i] = static_cast<T>(sum / static_cast<C>(divisor.of(e.axis, p.at)));
    });
  }
};

template <class T>
struct avg_pool_gradient_body {
  ops::pool_extents e;
  pool_sizes sizes;
  ops::pool_divisor divisor;
  const T* dy;
  T* dx;
  bool add;

  SINTER_WORD index_t numel() const { return e.elements(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, sizes.in, e.channels);
      C sum = 0;
      each_window_with(e, sizes, p.n, p.at, [&](index_t from, const index_t(&o)[3], index_t) {
        sum += static_cast<C>(dy[from * e.channels + p.channel]) / static_cast<C>(divisor.of(e.axis, o));
      });
      put_or_add(dx[i], sum, add);
    });
  }
};

template <device D>
pool_place_memory memory_of(const ops::pool_places<D>& p) {
  using sinter::detail::access;
  return {p.bytes.defined() ? access::data(p.bytes) : nullptr, p.words.defined() ? access::data(p.words) : nullptr};
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <int N, class Window, device D>
  requires is_cuda_v<D>
struct kernels<ops::max_pool_op<N, Window>, D> {
  using op_type = ops::max_pool_op<N, Window>;

  template <class T, class Epilogue>
  static ops::pool_places<D> forward(const op_type& op, const tensor<T, N + 2, D>& y, const Epilogue* after,
                                     const tensor<T, N + 2, D>& x) {
    const auto e = op.extents_of(x.shape(), y.shape());
    const auto places = op.template new_places<D>(y.numel(), e.taps());
    cuda_impl::launch_each<D>({op_type::name, y.shape()},
                              cuda_impl::max_pool_body<T>{e, cuda_impl::pool_sizes(e), access::data(x), access::data(y),
                                                          cuda_impl::memory_of(places)});
    if (after != nullptr) after->run();
    return places;
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    const auto e = op.extents_of(dx.to.shape(), g.shape());
    using T = element_of<decltype(g)>;
    cuda_impl::launch_each<D>(
        {"gradient of max pooling", dx.to.shape()},
        cuda_impl::max_pool_gradient_body<T>{e, cuda_impl::pool_sizes(e), access::data(g),
                                             cuda_impl::memory_of(b.saved), access::data(dx.to), dx.add});
  }
  static void find_indices(const op_type& op, const ops::pool_places<D>& places, const extents<N + 2>& x,
                           const tensor<std::int64_t, N + 2, D>& indices) {
    const auto e = op.extents_of(x, indices.shape());
    cuda_impl::launch_each<D>(
        {"indices of max pooling", indices.shape()},
        cuda_impl::pool_indices_body{e, cuda_impl::pool_sizes(e), cuda_impl::memory_of(places), access::data(indices)});
  }
};

template <int N, class Window, device D>
  requires is_cuda_v<D>
struct kernels<ops::avg_pool_op<N, Window>, D> {
  using op_type = ops::avg_pool_op<N, Window>;

  template <class T, class Epilogue>
  static void forward(const op_type& op, const tensor<T, N + 2, D>& y, const Epilogue* after,
                      const tensor<T, N + 2, D>& x) {
    const auto e = op.extents_of(x.shape(), y.shape());
    cuda_impl::launch_each<D>(
        {op_type::name, y.shape()},
        cuda_impl::avg_pool_body<T>{e, cuda_impl::pool_sizes(e), op.divisor, access::data(x), access::data(y)});
    if (after != nullptr) after->run();
  }
  template <class Backward>
  static void reverse(const op_type& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    const auto& g = b.gradient();
    const auto e = op.extents_of(dx.to.shape(), g.shape());
    using T = element_of<decltype(g)>;
    cuda_impl::launch_each<D>({"gradient of average pooling", dx.to.shape()},
                              cuda_impl::avg_pool_gradient_body<T>{e, cuda_impl::pool_sizes(e), op.divisor,
                                                                   access::data(g), access::data(dx.to), dx.add});
  }
};

}  // namespace sinter::detail
