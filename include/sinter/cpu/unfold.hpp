// sinter/cpu/unfold.hpp: unfold and fold on the host.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/unfold.hpp"

namespace sinter::cpu_impl {

/// The windows along the last axis whose tap kw lies inside the image: from `begin` to `end`; the first one's element
/// is `from`.
struct inner_windows {
  index_t begin, end, from;
  inner_windows(const ops::unfold_extents& e, index_t kw) {
    const index_t at = kw * e.dilation[1] - e.padding[1];  // of window 0
    begin = at < 0 ? std::min((-at + e.stride[1] - 1) / e.stride[1], e.blocks[1]) : 0;
    end = at < e.in[1] ? std::min((e.in[1] - 1 - at) / e.stride[1] + 1, e.blocks[1]) : 0;
    from = at + begin * e.stride[1];
    end = std::max(begin, end);
  }
};

/// columns (+)= the windows of an image.
template <class T>
void make_columns(const ops::unfold_extents& e, const T* image, T* columns, bool add, thread_pool& pool) {
  using C = compute_type<T>;
  const index_t rows = e.channels * e.kernel[0] * e.kernel[1], windows = e.blocks[0] * e.blocks[1];
  const index_t lines = e.batch * rows, grain = std::max<index_t>(16384 / std::max<index_t>(windows, 1), 1);
  pool.parallel_for((lines + grain - 1) / grain, [&](index_t task) {
    for (index_t line = task * grain; line < std::min((task + 1) * grain, lines); ++line) {
      const index_t n = line / rows, row = line % rows, kw = row % e.kernel[1];
      const index_t kh = row / e.kernel[1] % e.kernel[0], channel = row / (e.kernel[1] * e.kernel[0]);
      const T* const plane = image + n * e.image_batch + channel * e.image_channel;
      T* to = columns + n * e.column_batch + row * e.column_row;
      const inner_windows inner(e, kw);
      for (index_t block = 0; block < e.blocks[0]; ++block, to += e.blocks[1] * e.column_block) {
        const index_t h = block * e.stride[0] + kh * e.dilation[0] - e.padding[0];
        const bool is_inside = h >= 0 && h < e.in[0];
        const index_t begin = is_inside ? inner.begin : e.blocks[1], end = is_inside ? inner.end : e.blocks[1];
        const T* const from = begin < end ? plane + h * e.image[0] + inner.from * e.image[1] : plane;
        const index_t step = e.stride[1] * e.image[1];
        if (add) {
          for (index_t k = begin; k < end; ++k)
            to[k * e.column_block] =
                static_cast<T>(static_cast<C>(to[k * e.column_block]) + static_cast<C>(from[(k - begin) * step]));
          continue;
        }
        for (index_t k = 0; k < begin; ++k) to[k * e.column_block] = T(0);
        for (index_t k = begin; k < end; ++k) to[k * e.column_block] = from[(k - begin) * step];
        for (index_t k = end; k < e.blocks[1]; ++k) to[k * e.column_block] = T(0);
      }
    }
  });
}

/// image (+)= the sums of columns. Each line of the image is summed alone, in one order.
template <class T>
void add_columns(const ops::unfold_extents& e, const T* columns, T* image, bool add, thread_pool& pool) {
  using C = compute_type<T>;
  const index_t lines = e.batch * e.channels * e.in[0];
  const index_t reads = e.in[1] * e.kernel[0] * e.kernel[1];
  const index_t grain = std::max<index_t>(16384 / std::max<index_t>(reads, 1), 1);
  pool.parallel_for((lines + grain - 1) / grain, [&](index_t task) {
    std::vector<C> sums(static_cast<std::size_t>(e.in[1]));
    for (index_t line = task * grain; line < std::min((task + 1) * grain, lines); ++line) {
      const index_t h = line % e.in[0], channel = line / e.in[0] % e.channels, n = line / (e.in[0] * e.channels);
      std::fill(sums.begin(), sums.end(), C(0));
      for (index_t kh = 0; kh < e.kernel[0]; ++kh) {
        const index_t at = h + e.padding[0] - kh * e.dilation[0], block = at / e.stride[0];
        if (at < 0 || block * e.stride[0] != at || block >= e.blocks[0]) continue;
        for (index_t kw = 0; kw < e.kernel[1]; ++kw) {
          const inner_windows inner(e, kw);
          const index_t row = (channel * e.kernel[0] + kh) * e.kernel[1] + kw;
          const T* const from =
              columns + n * e.column_batch + row * e.column_row + block * e.blocks[1] * e.column_block;
          for (index_t k = inner.begin; k < inner.end; ++k)
            sums[static_cast<std::size_t>(inner.from + (k - inner.begin) * e.stride[1])] +=
                static_cast<C>(from[k * e.column_block]);
        }
      }
      T* const to = image + n * e.image_batch + channel * e.image_channel + h * e.image[0];
      for (index_t w = 0; w < e.in[1]; ++w) {
        T& y = to[w * e.image[1]];
        const C sum = sums[static_cast<std::size_t>(w)];
        y = static_cast<T>(add ? static_cast<C>(y) + sum : sum);
      }
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

/// unfold and fold are the gradients of each other. The image is the one with more axes.
template <std::derived_from<ops::window_columns_op> Op, device D>
  requires is_cpu_v<D>
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
    auto& pool = backend<D>::pool();
    if constexpr (From::rank > To::rank)
      cpu_impl::make_columns(op.extents_of(from, to), from.data(), to.data(), add, pool);
    else cpu_impl::add_columns(op.extents_of(to, from), from.data(), to.data(), add, pool);
  }
};

}  // namespace sinter::detail
