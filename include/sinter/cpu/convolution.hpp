// sinter/cpu/convolution.hpp: convolutions on the host devices and their two gradients, channels last.
#pragma once

#include <type_traits>

#include "sinter/cpu/detail/conv_shape.hpp"
#include "sinter/cpu/threads.hpp"

namespace sinter::cpu_impl {

/// y = x * w, or y += x * w where `add` is set, and then bias and epilogue of `finish` over the matrix (pixels,
/// filters) of y; see conv_shape. x and y do not overlap. An image that is made has one group and one plane; a task
/// makes the pixels that it reads. Every bit of the result is the same for any number of threads. Besides the packed
/// weights, scratch memory is a part of the L2 cache for each thread, or some KiB for each channel, and is kept for
/// later calls; an image that tasks would make twice is made once, in memory of its own. Floats may go by Winograd's
/// tiles, see winograd_for, with more rounding than sums of products have; exact_convolution keeps them from it.
///
///     conv_shape s{n, 64, 128, 1, {1, h, w}, {1, h, w}, {1, 3, 3}, {1, 1, 1}, {0, 1, 1}, {1, 1, 1}};
///     conv_forward(s, x, w, dense_weights(s), y, false, {bias}, host_pool());
template <class T>
void conv_forward(const conv_shape& shape, const std::type_identity_t<conv_image<T>>& x, const T* w,
                  const conv_weight_strides& w_strides, T* y, bool add, const conv_finish<T>& finish,
                  thread_pool& pool);

/// dx = the gradient of x for the gradient dy of y, or dx += it where `add` is set. `finish` is that of conv_forward,
/// over the matrix (pixels, channels) of dx: what is the gradient of one convolution is the result of a transposed one.
template <class T>
void conv_backward_data(const conv_shape& shape, const T* dy, const T* w, const conv_weight_strides& w_strides, T* dx,
                        bool add, const conv_finish<T>& finish, thread_pool& pool);

/// dw = the gradient of the weights for the gradient dy of y, and db, unless it is null, that of the bias: the sums of
/// dy's columns. Both are added to what is there where `add` is set.
template <class T>
void conv_backward_weights(const conv_shape& s, const std::type_identity_t<conv_image<T>>& x, const T* dy, T* dw,
                           const conv_weight_strides& w_strides, T* db, bool add, thread_pool& pool);

}  // namespace sinter::cpu_impl

// sinter::compiled holds them for float and double, see variants.hpp. No other type reaches them.
#if SINTER_DEFINES

#include "sinter/cpu/detail/conv_depthwise.hpp"
#include "sinter/cpu/detail/conv_few_channels.hpp"
#include "sinter/cpu/detail/conv_plane_weights.hpp"
#include "sinter/cpu/detail/conv_product.hpp"
#include "sinter/cpu/detail/conv_weights.hpp"
#include "sinter/cpu/detail/gemm_dots.hpp"
#include "sinter/cpu/detail/winograd_choice.hpp"
#include "sinter/cpu/detail/winograd_product.hpp"
#include "sinter/cpu/detail/winograd_weights.hpp"

namespace sinter::cpu_impl {

namespace detail {

/// The product of patches and weights of one group.
template <class T>
struct group_call {
  const patches<T>& a;
  const weight_source<T>& w;
  const result_rows<T>& c;
  index_t first_column;
  bool depthwise, add;
  const conv_finish<T>& finish;

  /// Are there very few patches, of one pixel each, as behind a global pooling? They lie in one line; see one_line_of.
  bool has_few_pixels() const {
    return a.is_image() && a.batch == 1 && a.rows() <= 4 && !a.is_made() && w.channel_stride == 1 &&
           c.step[2] == c.row_length && c.offset == 0 && w.channels > 0;
  }
};

/// The product with very few vectors; see has_few_pixels.
template <class T>
void multiply_few_pixels(const group_call<T>& g, thread_pool& pool) {
  T* const to = g.c.data + g.first_column;
  const index_t rows = g.a.rows();
  const gemm_args<T> args{rows,     g.w.columns, g.w.channels,      g.a.data, g.a.pixel_stride, 1,
                          g.w.data, 1,           g.w.column_stride, to,       g.c.row_length,   g.add};
  dot_product<T>{args, pool, true}.compute();
  if (g.finish.bias != nullptr)
    for (index_t i = 0; i < rows; ++i)
      add_elements(to + i * g.c.row_length, g.finish.bias + g.first_column, g.w.columns);
  g.finish.after(0, rows, g.first_column, g.first_column + g.w.columns);
}

template <class T>
winograd_cut winograd_of(const patches<T>& a, const weight_source<T>& w, bool is_kept) {
  return winograd_for<T>(a.axes, a.batch, a.channels, w.columns,
                         is_kept ? winograd_use::kept_weights : winograd_use::weights);
}

/// patches * weights for one group.
template <class T>
void multiply_patches(patches<T> a, const weight_source<T>& w, const result_rows<T>& c, index_t first_column,
                      bool depthwise, bool add, const conv_finish<T>& finish, thread_pool& pool) {
  using sinter::detail::form_of;
  if (a.rows() == 0 || w.columns == 0) return;
  const group_call<T> call{a, w, c, first_column, depthwise, add, finish};
  const sinter::detail::weight_forms* const kept = sinter::detail::forms_of(w.data);
  if constexpr (std::is_same_v<T, float>) {
    if (are_rounded(kept)) return kept->kernels().rounded_convolution(&call, &pool);
  }
  if (depthwise) {
    const form_of<weight_rows<T>> taps(w.key(), w);
    return depthwise_product<T>{a, *taps, c, add, finish}.compute(pool);
  }
  if (call.has_few_pixels()) return multiply_few_pixels(call, pool);
  if constexpr (has_winograd<T>) {
    if (const winograd_cut cut = winograd_of(a, w, kept != nullptr)) {
      const form_of<packed_points<T>> packed(w.key(cut.tile, cut.taps), w, cut, std::ref(pool));
      return winograd_product<T>(a, *packed, c, first_column, add, finish).compute(pool);
    }
  }
  const form_of<packed_weights<T>> packed(w.key(), w, std::ref(pool));
  patch_product<T>(a, *packed, c, first_column, add, finish).compute(pool);
}

/// Has `product` compute with the image of `a`, to which it refers.
template <class T, class Product>
void compute_weights(patches<T>& a, Product&& product, T* dw, const conv_weight_strides& strides, T* sums, bool add,
                     thread_pool& pool) {
  const whole_image<T> whole(a, product.makes_often(), pool);
  product.compute(dw, strides, sums, add, pool);
}

/// dw and, unless it is null, `sums` = the gradients of one group's weights and biases.
template <class T>
void multiply_pixels(patches<T> a, const T* dy, index_t filters, index_t dy_stride, T* dw,
                     const conv_weight_strides& strides, T* sums, bool add, thread_pool& pool) {
  if constexpr (has_winograd<T>) {
    if (const winograd_cut cut = winograd_for<T>(a.axes, a.batch, a.channels, filters, winograd_use::weight_gradient))
      return compute_weights<T>(a, winograd_weight_product<T>(a, dy, filters, dy_stride, cut), dw, strides, sums, add,
                                pool);
  }
  if (a.are_planes() && filters >= tile_shape<T>::lanes)
    return plane_weights<T>(a, dy, filters, dy_stride).compute(dw, strides, sums, add, pool);
  compute_weights<T>(a, weight_product<T>(a, dy, filters, dy_stride), dw, strides, sums, add, pool);
}

/// dw where the matrix of patches is the image itself: x, the narrower factor, is the one that is packed for the L2
/// cache.
template <class T>
void multiply_narrow_image(patches<T> x, const patches<T>& dy, T* dw, const conv_weight_strides& strides, bool add,
                           thread_pool& pool) {
  const whole_image<T> whole(x, x.is_made(), pool);
  weight_product<T>(dy, x.data, x.channels, x.pixel_stride)
      .compute(dw, {strides.channel, strides.filter, {}}, nullptr, add, pool);
}

/// The image from a channel on; one that is made is not cut.
template <class T>
conv_image<T> group_of(const conv_image<T>& x, index_t first_channel) {
  return x.make == nullptr ? conv_image<T>(x.data + first_channel) : x;
}

inline bool is_depthwise(const conv_shape& s) {
  return s.groups > 1 && s.channels == s.groups && s.filters == s.groups;
}

/// The same convolution where each result reads the pixel at its own place, with all pixels in one line; else `s`.
inline conv_shape one_line_of(const conv_shape& s) {
  for (int a = 0; a < 3; ++a)
    if (s.kernel[a] != 1 || s.stride[a] != 1 || s.padding[a] != 0 || s.in[a] != s.out[a]) return s;
  conv_shape line = s;
  line.batch = 1;
  line.in[2] = line.out[2] = s.batch * s.in[0] * s.in[1] * s.in[2];
  line.in[0] = line.out[0] = line.in[1] = line.out[1] = 1;
  return line;
}

}  // namespace detail

template <class T>
void conv_forward(const conv_shape& shape, const std::type_identity_t<conv_image<T>>& x, const T* w,
                  const conv_weight_strides& w_strides, T* y, bool add, const conv_finish<T>& finish,
                  thread_pool& pool) {
  const conv_shape s = detail::one_line_of(shape);
  const detail::conv_axis axes[] = {detail::forward_axis(s, 0), detail::forward_axis(s, 1), detail::forward_axis(s, 2)};
  const bool depthwise = detail::is_depthwise(s);
  const index_t groups = depthwise ? 1 : s.groups, channels = s.channels / groups, filters = s.filters / groups;
  const index_t line = s.out[2] * s.filters, area = s.out[1] * line;
  const detail::result_rows<T> rows{y, s.out[0] * area, {area, line, s.filters}, s.filters, 0};
  for (index_t g = 0; g < groups; ++g) {
    const detail::patches<T> patches(detail::group_of(x, g * channels), s.batch, s.channels, channels, axes);
    const detail::weight_source<T> weights{w + g * filters * w_strides.filter,
                                           {s.kernel[0], s.kernel[1], s.kernel[2]},
                                           {w_strides.tap[0], w_strides.tap[1], w_strides.tap[2]},
                                           depthwise ? 1 : channels,
                                           w_strides.channel,
                                           filters,
                                           w_strides.filter};
    detail::multiply_patches(patches, weights, rows, g * filters, depthwise, add, finish, pool);
  }
}

template <class T>
void conv_backward_data(const conv_shape& shape, const T* dy, const T* w, const conv_weight_strides& w_strides, T* dx,
                        bool add, const conv_finish<T>& finish, thread_pool& pool) {
  const conv_shape s = detail::one_line_of(shape);
  const bool depthwise = detail::is_depthwise(s);
  const index_t groups = depthwise ? 1 : s.groups, channels = s.channels / groups, filters = s.filters / groups;
  const index_t line = s.in[2] * s.channels, area = s.in[1] * line, steps[] = {area, line, s.channels};
  if (detail::few_channel_gradient<T>::takes(s) && !are_rounded(sinter::detail::forms_of(w))) {
    const detail::result_rows<T> rows{dx, s.in[0] * area, {area, line, s.channels}, s.channels, 0};
    const detail::weight_source<T> weights{w,
                                           {1, s.kernel[1], s.kernel[2]},
                                           {0, w_strides.tap[1], w_strides.tap[2]},
                                           s.channels,
                                           w_strides.channel,
                                           s.filters,
                                           w_strides.filter};
    const sinter::detail::form_of<detail::weight_rows<T>> packed(weights.key(), weights);
    return detail::few_channel_gradient<T>(s, dy, *packed, rows, add, finish).compute(pool);
  }
  const index_t phases = s.stride[0] * s.stride[1] * s.stride[2];
  for (index_t phase = 0; phase < phases; ++phase) {
    const index_t at[] = {phase / s.stride[2] / s.stride[1], phase / s.stride[2] % s.stride[1], phase % s.stride[2]};
    detail::conv_axis axes[3];
    index_t origin = 0, first_tap = 0, tap_strides[3];
    for (int a = 0; a < 3; ++a) {
      const ops::gradient_phase p = ops::phase_of(s, a, at[a]);
      axes[a] = p.axis;
      origin += at[a] * steps[a];
      first_tap += p.last_tap * w_strides.tap[a];
      tap_strides[a] = -p.tap_step * w_strides.tap[a];
    }
    const detail::result_rows<T> rows{dx + origin,
                                      s.in[0] * area,
                                      {s.stride[0] * steps[0], s.stride[1] * steps[1], s.stride[2] * steps[2]},
                                      s.channels,
                                      origin};
    for (index_t g = 0; g < groups; ++g) {
      const detail::patches<T> patches(dy + g * filters, s.batch, s.filters, filters, axes);
      const detail::weight_source<T> weights{w + (g * filters * w_strides.filter + first_tap),
                                             {axes[0].taps, axes[1].taps, axes[2].taps},
                                             {tap_strides[0], tap_strides[1], tap_strides[2]},
                                             depthwise ? 1 : filters,
                                             w_strides.filter,
                                             channels,
                                             depthwise ? w_strides.filter : w_strides.channel};
      detail::multiply_patches(patches, weights, rows, g * channels, depthwise, add, finish, pool);
    }
  }
}

template <class T>
void conv_backward_weights(const conv_shape& s, const std::type_identity_t<conv_image<T>>& x, const T* dy, T* dw,
                           const conv_weight_strides& w_strides, T* db, bool add, thread_pool& pool) {
  const detail::conv_axis axes[] = {detail::forward_axis(s, 0), detail::forward_axis(s, 1), detail::forward_axis(s, 2)};
  const bool depthwise = detail::is_depthwise(s);
  const index_t groups = depthwise ? 1 : s.groups, channels = s.channels / groups, filters = s.filters / groups;
  for (index_t g = 0; g < groups; ++g) {
    const detail::patches<T> patches(detail::group_of(x, g * channels), s.batch, s.channels, channels, axes);
    T* const to = dw + g * filters * w_strides.filter;
    T* const sums = db != nullptr ? db + g * filters : nullptr;
    if (patches.is_image() && filters > channels && db == nullptr) {
      const detail::patches<T> gradient(dy + g * filters, s.batch, s.filters, filters, axes);
      detail::multiply_narrow_image(patches, gradient, to, w_strides, add, pool);
    } else if (depthwise) detail::depthwise_weights<T>(patches, dy).compute(to, w_strides, sums, add, pool);
    else detail::multiply_pixels<T>(patches, dy + g * filters, filters, s.filters, to, w_strides, sums, add, pool);
  }
}

}  // namespace sinter::cpu_impl

#endif  // SINTER_DEFINES
