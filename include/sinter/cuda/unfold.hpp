// sinter/cuda/unfold.hpp: unfold and fold on GPUs: a thread for each element that is written. Plain kernels, not tuned.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/unfold.hpp"

namespace sinter::cuda_impl {

/// columns (+)= the windows of an image.
template <class T>
struct make_columns_body {
  using C = compute_type<T>;
  ops::unfold_extents e;
  const T* image;
  T* columns;
  bool add;

  SINTER_WORD index_t numel() const {
    return e.batch * e.channels * e.kernel[0] * e.kernel[1] * e.blocks[0] * e.blocks[1];
  }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel(), windows = e.blocks[0] * e.blocks[1], taps = e.kernel[0] * e.kernel[1];
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const index_t window = i % windows, row = i / windows % (e.channels * taps),
                    batch = i / windows / e.channels / taps;
      const index_t h =
          window / e.blocks[1] * e.stride[0] + row / e.kernel[1] % e.kernel[0] * e.dilation[0] - e.padding[0];
      const index_t w = window % e.blocks[1] * e.stride[1] + row % e.kernel[1] * e.dilation[1] - e.padding[1];
      C x = 0;
      if (h >= 0 && h < e.in[0] && w >= 0 && w < e.in[1])
        x = static_cast<C>(
            image[batch * e.image_batch + row / taps * e.image_channel + h * e.image[0] + w * e.image[1]]);
      T& to = columns[batch * e.column_batch + row * e.column_row + window * e.column_block];
      to = static_cast<T>(add ? static_cast<C>(to) + x : x);
    }
  }
};

/// image (+)= the sums of columns.
template <class T>
struct add_columns_body {
  using C = compute_type<T>;
  ops::unfold_extents e;
  const T* columns;
  T* image;
  bool add;

  SINTER_WORD index_t numel() const { return e.batch * e.channels * e.in[0] * e.in[1]; }
  /// The window along an axis that has element `at` at a tap, or -1.
  SINTER_WORD index_t find_window(int axis, index_t at, index_t tap) const {
    const index_t begin = at + e.padding[axis] - tap * e.dilation[axis], window = begin / e.stride[axis];
    return begin >= 0 && window * e.stride[axis] == begin && window < e.blocks[axis] ? window : -1;
  }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const index_t w = i % e.in[1], h = i / e.in[1] % e.in[0];
      const index_t channel = i / (e.in[1] * e.in[0]) % e.channels, batch = i / (e.in[1] * e.in[0]) / e.channels;
      C sum = 0;
      for (index_t kh = 0; kh < e.kernel[0]; ++kh) {
        const index_t down = find_window(0, h, kh);
        if (down < 0) continue;
        for (index_t kw = 0; kw < e.kernel[1]; ++kw) {
          const index_t across = find_window(1, w, kw);
          if (across < 0) continue;
          const index_t row = (channel * e.kernel[0] + kh) * e.kernel[1] + kw;
          sum += static_cast<C>(
              columns[batch * e.column_batch + row * e.column_row + (down * e.blocks[1] + across) * e.column_block]);
        }
      }
      T& to = image[batch * e.image_batch + channel * e.image_channel + h * e.image[0] + w * e.image[1]];
      to = static_cast<T>(add ? static_cast<C>(to) + sum : sum);
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

/// unfold and fold are the gradients of each other. The image is the one with more axes.
template <std::derived_from<ops::window_columns_op> Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> {
  template <class Y, class Epilogue, class X>
  static void forward(const Op& op, const Y& y, const Epilogue*, const X& x) {
    run(op, x, y, false);
  }
  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    run(op, b.gradient(), dx.to, dx.add);
  }

 private:
  template <class From, class To>
  static void run(const Op& op, const From& from, const To& to, bool add) {
    using T = element_of<To>;
    const auto launch = [&](const auto& body) { cuda_impl::launch_each<D>({Op::name, to.shape()}, body); };
    if constexpr (From::rank > To::rank)
      launch(cuda_impl::make_columns_body<T>{op.extents_of(from, to), access::data(from), access::data(to), add});
    else launch(cuda_impl::add_columns_body<T>{op.extents_of(to, from), access::data(from), access::data(to), add});
  }
};

}  // namespace sinter::detail
