// sinter/cuda/conv.hpp: conv1d, conv2d, conv3d and their transposes on GPUs: a thread for each result. Plain kernels,
// not tuned.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/conv_transpose.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::cuda_impl {

/// Elements i, i + all threads, ... of n.
template <class G, class F>
SINTER_WORD void each_element(const G& g, index_t n, const F& f) {
  for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) f(i);
}
/// Coordinates of an element of (N, a, b, c, C), the channels last.
struct pixel {
  index_t n, at[3], channel;
  SINTER_WORD pixel(index_t i, const index_t (&extent)[3], index_t channels) {
    channel = i % channels;
    i /= channels;
    for (int d = 2; d >= 0; --d) {
      at[d] = i % extent[d];
      i /= extent[d];
    }
    n = i;
  }
};
SINTER_WORD index_t pixel_number(index_t n, const index_t (&at)[3], const index_t (&extent)[3]) {
  return ((n * extent[0] + at[0]) * extent[1] + at[1]) * extent[2] + at[2];
}
/// f(tap) for all taps.
template <class F>
SINTER_WORD void each_tap(const index_t (&kernel)[3], const F& f) {
  index_t tap[3];
  for (tap[0] = 0; tap[0] < kernel[0]; ++tap[0])
    for (tap[1] = 0; tap[1] < kernel[1]; ++tap[1])
      for (tap[2] = 0; tap[2] < kernel[2]; ++tap[2]) f(tap);
}
/// Where a tap of the window of result `out` lies in x; false outside.
SINTER_WORD bool find_input(const ops::conv_extents& e, const index_t (&out)[3], const index_t (&tap)[3],
                            index_t (&in)[3]) {
  for (int d = 0; d < 3; ++d) {
    in[d] = out[d] * e.stride[d] + tap[d] * e.dilation[d] - e.padding[d];
    if (in[d] < 0 || in[d] >= e.in[d]) return false;
  }
  return true;
}
/// The result whose window has x's element `in` at a tap; false if there is none.
SINTER_WORD bool find_result(const ops::conv_extents& e, const index_t (&in)[3], const index_t (&tap)[3],
                             index_t (&out)[3]) {
  for (int d = 0; d < 3; ++d) {
    const index_t at = in[d] + e.padding[d] - tap[d] * e.dilation[d];
    out[d] = at / e.stride[d];
    if (at < 0 || out[d] * e.stride[d] != at || out[d] >= e.out[d]) return false;
  }
  return true;
}
SINTER_WORD index_t weight_place(const ops::conv_extents& e, const index_t (&tap)[3]) {
  return tap[0] * e.w_tap[0] + tap[1] * e.w_tap[1] + tap[2] * e.w_tap[2];
}
template <class T>
SINTER_WORD void put_or_add(T& to, compute_type<T> value, bool add) {
  to = static_cast<T>(add ? static_cast<compute_type<T>>(to) + value : value);
}

template <class T>
struct conv_body {
  ops::conv_extents e;
  const T *x, *w, *bias;
  T* y;
  bool add;
  SINTER_WORD index_t numel() const { return e.batch * e.out[0] * e.out[1] * e.out[2] * e.filters; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    const index_t channels = e.channels / e.groups, filters = e.filters / e.groups;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, e.out, e.filters);
      const index_t first = p.channel / filters * channels;
      C sum = bias != nullptr ? static_cast<C>(bias[p.channel]) : C(0);
      each_tap(e.kernel, [&](const index_t(&tap)[3]) {
        index_t in[3];
        if (!find_input(e, p.at, tap, in)) return;
        const T* const from = x + pixel_number(p.n, in, e.in) * e.channels + first;
        const T* const weights = w + p.channel * e.w_filter + weight_place(e, tap);
        for (index_t c = 0; c < channels; ++c)
          sum += static_cast<C>(from[c]) * static_cast<C>(weights[c * e.w_channel]);
      });
      put_or_add(y[i], sum, add);
    });
  }
};

template <class T>
struct conv_data_body {
  ops::conv_extents e;
  const T *dy, *w, *bias;
  T* dx;
  bool add;
  SINTER_WORD index_t numel() const { return e.batch * e.in[0] * e.in[1] * e.in[2] * e.channels; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    const index_t channels = e.channels / e.groups, filters = e.filters / e.groups;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, e.in, e.channels);
      const index_t group = p.channel / channels, channel = p.channel - group * channels;
      C sum = bias != nullptr ? static_cast<C>(bias[p.channel]) : C(0);
      each_tap(e.kernel, [&](const index_t(&tap)[3]) {
        index_t out[3];
        if (!find_result(e, p.at, tap, out)) return;
        const T* const from = dy + pixel_number(p.n, out, e.out) * e.filters + group * filters;
        const T* const weights = w + group * filters * e.w_filter + channel * e.w_channel + weight_place(e, tap);
        for (index_t f = 0; f < filters; ++f) sum += static_cast<C>(from[f]) * static_cast<C>(weights[f * e.w_filter]);
      });
      put_or_add(dx[i], sum, add);
    });
  }
};

/// A thread for each weight, which goes over all results in their order.
template <class T>
struct conv_weights_body {
  ops::conv_extents e;
  const T *x, *dy;
  T* dw;
  bool add;
  SINTER_WORD index_t numel() const {
    return e.filters * (e.channels / e.groups) * e.kernel[0] * e.kernel[1] * e.kernel[2];
  }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    const index_t channels = e.channels / e.groups, filters = e.filters / e.groups;
    each_element(g, numel(), [&](index_t i) {
      const pixel p(i, e.kernel, channels);  // of which `n` is the filter
      const index_t channel = p.n / filters * channels + p.channel;
      C sum = 0;
      for (index_t n = 0; n < e.batch; ++n)
        each_tap(e.out, [&](const index_t(&out)[3]) {
          index_t in[3];
          if (!find_input(e, out, p.at, in)) return;
          sum += static_cast<C>(x[pixel_number(n, in, e.in) * e.channels + channel]) *
                 static_cast<C>(dy[pixel_number(n, out, e.out) * e.filters + p.n]);
        });
      put_or_add(dw[p.n * e.w_filter + p.channel * e.w_channel + weight_place(e, p.at)], sum, add);
    });
  }
};

template <device D, class Body, int R>
void run_conv(const char* what, const extents<R>& shape, const Body& body) {
  if (body.numel() > 0) launch_on<D>({what, shape}, body, {blocks_for(body.numel(), block_threads), 0});
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <ops::is_convolution Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> {
  template <class T>
  using images = tensor<T, Op::rank_of_images, D>;

  template <class T, class Epilogue, class... B>
  static void forward(const Op& op, const images<T>& y, const Epilogue* after, const images<T>& x, const images<T>& w,
                      const B&... bias) {
    const auto run = [&](const T* b) {
      pass<Op::transposed>(Op::name, op.extents_of(x.shape(), w.shape(), w.strides(), y.shape()), x, w, b, y, false);
    };
    if constexpr (sizeof...(B) > 0) [&](const auto& b) { run(access::data(b.contiguous())); }(bias...);
    else run(nullptr);
    if (after != nullptr) after->run();
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto& g = b.gradient();
    using T = element_of<decltype(g)>;
    if (b.template wants<0>()) {
      const auto dx = b.template place_of<0>();
      const images<T>& w = b.template operand<1>();
      pass<!Op::transposed, T>("data gradient of a convolution",
                               op.extents_of(dx.to.shape(), w.shape(), w.strides(), g.shape()), g, w, nullptr, dx.to,
                               dx.add);
    }
    if (b.template wants<1>()) {
      const auto dw = b.template place_of<1>();
      const images<T>& x = b.template operand<0>();
      const images<T>&image = Op::transposed ? g : x, &result = Op::transposed ? x : g;
      const auto e = op.extents_of(x.shape(), dw.to.shape(), dw.to.strides(), g.shape());
      cuda_impl::run_conv<D>(
          "weight gradient of a convolution", dw.to.shape(),
          cuda_impl::conv_weights_body<T>{e, access::data(image), access::data(result), access::data(dw.to), dw.add});
    }
    if constexpr (Op::has_bias) {
      if (b.template wants<2>()) {
        const auto db = b.template place_of<2>();
        index_t axes[std::size_t{Op::rank_of_images - 1}] = {0};
        for (int d = 1; d < Op::rank_of_images - 1; ++d) axes[d] = d + 1;
        using To = bare<decltype(db.to)>;
        if (db.add) To(db.to) += sum(g, axes);
        else write(eval(sum(g, axes)), db.to);
      }
    }
  }

 private:
  /// From x to y of a convolution, or back.
  template <bool Back, class T>
  static void pass(const char* what, const ops::conv_extents& e, const images<T>& from, const images<T>& w,
                   const T* bias, const images<T>& to, bool add) {
    using body = std::conditional_t<Back, cuda_impl::conv_data_body<T>, cuda_impl::conv_body<T>>;
    cuda_impl::run_conv<D>(what, to.shape(), body{e, access::data(from), access::data(w), bias, access::data(to), add});
  }
};

}  // namespace sinter::detail
