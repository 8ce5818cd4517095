// sinter/cpu/conv.hpp: conv1d, conv2d, conv3d and their transposes on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/convolution.hpp"
#include "sinter/cpu/resample.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/conv_transpose.hpp"
#include "sinter/ops/sum.hpp"

namespace sinter::cpu_impl {

inline conv_shape conv_shape_of(const ops::conv_extents& e) {
  conv_shape s{e.batch, e.channels, e.filters, e.groups, {}, {}, {}, {}, {}, {}};
  for (int d = 0; d < 3; ++d) {
    s.in[d] = e.in[d];
    s.out[d] = e.out[d];
    s.kernel[d] = e.kernel[d];
    s.stride[d] = e.stride[d];
    s.padding[d] = e.padding[d];
    s.dilation[d] = e.dilation[d];
  }
  return s;
}
/// A pass over these extents reads two of image, weights and result, and writes the third.
inline void count_convolution(const ops::conv_extents& e, int axes, std::size_t element) {
  if (!sinter::detail::work_log::is_open()) return;
  double taps = 1, image = 1, result = 1;
  for (int d = 0; d < 3; ++d) {
    taps *= static_cast<double>(e.kernel[d]);
    image *= static_cast<double>(e.in[d]);
    result *= static_cast<double>(e.out[d]);
  }
  const auto batch = static_cast<double>(e.batch), channels = static_cast<double>(e.channels),
             filters = static_cast<double>(e.filters),
             weights = taps * channels * filters / static_cast<double>(e.groups);
  index_t shape[] = {e.batch, e.filters, 0, 0, 0};
  for (int d = 0; d < axes; ++d) shape[d + 2] = e.out[d + 3 - axes];
  sinter::detail::note_shape_of_work(shape, axes + 2);
  sinter::detail::count_work(batch * result * weights,
                             (batch * (image * channels + result * filters) + weights) * static_cast<double>(element));
}
inline conv_weight_strides conv_strides_of(const ops::conv_extents& e) {
  return {e.w_filter, e.w_channel, {e.w_tap[0], e.w_tap[1], e.w_tap[2]}};
}

/// Elements of an expression without points as a convolution's image, in the order of dense images with the channels
/// last.
class made_image {
 public:
  explicit made_image(const loop& rows) : loop_(channels_last(rows)) {}

  template <class T>
  conv_image<T> image() const {
    return {[](const void* made, index_t begin, index_t end, T* to) {
              char* const base[1] = {reinterpret_cast<char*>(to)};
              const bool add[1] = {false};
              static_cast<const prepared_loop*>(made)->run(begin, end, base, add, true);
            },
            &loop_};
  }

 private:
  static loop channels_last(loop l) {
    put_channels_last(l);
    sinter::detail::row_major_strides(l.shape, l.rank, l.out[0].strides);
    return l;
  }

  prepared_loop loop_;
};

}  // namespace sinter::cpu_impl

namespace sinter::detail {

/// What is the gradient of x for a convolution is the result of a transposed one, and the other way round. Half and
/// bfloat16 are computed in float.
template <ops::is_convolution Op, device D>
  requires is_cpu_v<D>
struct kernels<Op, D> {
  template <class T>
  using images = tensor<T, Op::rank_of_images, D>;

  template <class T, class Epilogue, class X, class... B>
  static void forward(const Op& op, const images<T>& y, const Epilogue* after, const X& x, const images<T>& w,
                      const B&... bias) {
    if constexpr (narrow_element<T>) {
      const auto wide = images<float>::uninitialized(y.shape(), y.strides());
      forward(op, wide, static_cast<const Epilogue*>(nullptr), eval(cast<float>(x)), eval(cast<float>(w)),
              eval(cast<float>(bias))...);
      write(cast<T>(wide), y);
      const index_t pixels = y.shape()[1] > 0 ? y.numel() / y.shape()[1] : 0;
      if (after != nullptr && pixels > 0) after->tile(0, pixels, 0, y.shape()[1]);
    } else {
      cpu_impl::conv_finish<T> finish{nullptr, cpu_impl::tiles_of(after)};
      const auto run = [&](const T* b) {
        finish.bias = b;
        if constexpr (Op::transposed)
          pass<true>(op.extents_of(x.shape(), w.shape(), w.strides(), y.shape()), x, w, y, false, finish);
        else
          with_image(op, x, w, y, [&](const ops::conv_extents& e, const cpu_impl::conv_image<T>& image) {
            convolve(e, image, w, y, false, finish);
          });
      };
      if constexpr (sizeof...(B) > 0) [&](const auto& b) { run(b.contiguous().data()); }(bias...);
      else run(nullptr);
    }
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    using T = element_of<decltype(b.gradient())>;
    if constexpr (narrow_element<T>) return reverse_narrow_gradients<T>(op, b);
    else {
      const images<T>& g = b.gradient();
      if (b.template wants<0>()) {
        const auto dx = b.template place_of<0>();
        image_gradient<T>(op, g, b.template operand<1>(), dx.to, dx.add);
      }
      sum_gradients<T>(op, b);
    }
  }

 private:
  /// f(extents, image) of x, an operand or a formula, with what op's padding mode puts around a formula.
  template <class X, class T, class F>
  static void with_image(const Op& op, const X& x, const images<T>& w, const images<T>& y, const F& f) {
    const auto extents_with = [&](const Op& o, const auto& shape) {
      return o.extents_of(shape, w.shape(), w.strides(), y.shape());
    };
    const auto with_value = [&](const Op& o, const images<T>& value) {
      const memory_format format = o.options.groups == 1 ? Op::template format_of<Op>(0, value) : channels_last;
      const images<T> image = value.to_memory_format(format);
      const ops::conv_extents e = extents_with(o, image.shape());
      f(format == channels_last ? e : e.of_planes(), cpu_impl::conv_image<T>(image.data()));
    };
    if constexpr (is_tensor<X>) with_value(op, x);
    else if (pads_by_copy(op)) {
      Op inside = op;
      inside.options.padding = 0;
      with_value(inside, eval(pad(eval(untrack(x)), amounts_around(op.options, w.shape()), op.options.padding_mode)));
    } else if (op.evaluates_first(x)) {
      with_value(op, eval(untrack(x)));
    } else {
      cpu_impl::with_producer(x, [&](const cpu_impl::loop& l, bool) {
        const cpu_impl::made_image made(l);
        f(extents_with(op, x.shape()), made.template image<T>());
      });
    }
  }
  /// Does the kernel put something else than zeros around an image? It is there already around one in memory.
  static bool pads_by_copy(const Op& op) {
    if constexpr (Op::transposed) return false;
    else return op.pads_by_copy();
  }

  template <class T>
  static void convolve(const ops::conv_extents& e, const cpu_impl::conv_image<T>& from, const images<T>& w,
                       const images<T>& to, bool add, const cpu_impl::conv_finish<T>& finish) {
    cpu_impl::count_convolution(e, Op::rank_of_images - 2, sizeof(T));
    cpu_impl::conv_forward<T>(cpu_impl::conv_shape_of(e), from, w.data(), cpu_impl::conv_strides_of(e), to.data(), add,
                              finish, backend<D>::pool());
  }
  /// From x to y of a convolution, or back.
  template <bool Back, class T>
  static void pass(const ops::conv_extents& e, const images<T>& from, const images<T>& w, const images<T>& to, bool add,
                   const cpu_impl::conv_finish<T>& finish) {
    if constexpr (Back) {
      cpu_impl::count_convolution(e, Op::rank_of_images - 2, sizeof(T));
      cpu_impl::conv_backward_data<T>(cpu_impl::conv_shape_of(e), from.data(), w.data(), cpu_impl::conv_strides_of(e),
                                      to.data(), add, finish, backend<D>::pool());
    } else convolve<T>(e, from.data(), w, to, add, finish);
  }
  /// The same where an image has had something put around it: what stands there adds to what it is a copy of.
  template <class T>
  static void image_gradient(const Op& op, const images<T>& g, const images<T>& w, const images<T>& dx, bool add) {
    if (!pads_by_copy(op)) return data_gradient<T>(op, g, w, dx, add);
    if constexpr (!Op::transposed) {
      Op inside = op;
      inside.options.padding = 0;
      const ops::pad_op<T> around(amounts_around(op.options, w.shape()), op.options.padding_mode, T(0));
      const auto shape = around.shape(dx.shape());
      const auto padded = images<T>::uninitialized(shape, strides_in(channels_last, shape));
      data_gradient<T>(inside, g, w, padded, false);
      cpu_impl::resample_gradient<T>(ops::resampling_of(around, dx, padded, false), padded.data(), dx.data(), add)
          .run(backend<D>::pool());
    }
  }
  template <class T>
  static void data_gradient(const Op& op, const images<T>& g, const images<T>& w, const images<T>& dx, bool add) {
    pass<!Op::transposed, T>(op.extents_of(dx.shape(), w.shape(), w.strides(), g.shape()), g, w, dx, add, {});
  }
  /// `sums`, unless it is null, becomes the gradient of the bias of a convolution that is not transposed.
  template <class T, class X>
  static void weight_gradient(const Op& op, const X& x, const images<T>& g, const images<T>& dw, T* sums, bool add) {
    const auto run = [&](const ops::conv_extents& e, const cpu_impl::conv_image<T>& image, const images<T>& result) {
      cpu_impl::count_convolution(e, Op::rank_of_images - 2, sizeof(T));
      cpu_impl::conv_backward_weights<T>(cpu_impl::conv_shape_of(e), image, result.data(), dw.data(),
                                         cpu_impl::conv_strides_of(e), sums, add, backend<D>::pool());
    };
    if constexpr (Op::transposed) run(op.extents_of(x.shape(), dw.shape(), dw.strides(), g.shape()), g.data(), x);
    else
      with_image(op, x, dw, g,
                 [&](const ops::conv_extents& e, const cpu_impl::conv_image<T>& image) { run(e, image, g); });
  }
  /// Column sums of the matrix (pixels, channels) of g.
  template <class G, class To>
  static void bias_gradient(const G& g, const To& db, bool add) {
    using T = element_of<To>;
    index_t axes[std::size_t{Op::rank_of_images - 1}] = {0};
    for (int d = 1; d < Op::rank_of_images - 1; ++d) axes[d] = d + 1;
    const auto sums = eval(sum(g, axes));
    if (add) To(db) += cast<T>(sums);
    else write(cast<T>(sums), db);
  }

  /// Of weights and bias, together where one says where the other goes.
  template <class T, class Backward>
  static void sum_gradients(const Op& op, const Backward& b) {
    T* sums = nullptr;
    const auto give_weights = [&](const auto& dw) {
      weight_gradient<T>(op, b.template operand<0>(), b.gradient(), dw.to, sums, dw.add);
    };
    if constexpr (Op::has_bias) {
      if (b.template wants<2>()) {
        const auto db = b.template place_of<2>();
        if (!Op::transposed && b.template wants<1>()) {
          const auto dw = b.template place_of<1>();
          if (db.add == dw.add && db.to.is_contiguous() && dw.to.numel() > 0) sums = db.to.data();
          else bias_gradient(b.gradient(), db.to, db.add);
          return give_weights(dw);
        }
        bias_gradient(b.gradient(), db.to, db.add);
      }
    }
    if (b.template wants<1>()) give_weights(b.template place_of<1>());
  }

  template <class T, class Backward>
  static void reverse_narrow_gradients(const Op& op, const Backward& b) {
    const auto g = eval(cast<float>(b.gradient()));
    const auto give = [](const auto& place, const auto& wide) {
      using To = bare<decltype(place.to)>;
      if (place.add) To(place.to) += cast<T>(wide);
      else write(cast<T>(wide), place.to);
    };
    if (b.template wants<0>()) {
      const auto place = b.template place_of<0>();
      const auto dx = images<float>::uninitialized(place.to.shape(), place.to.strides());
      data_gradient<float>(op, g, eval(cast<float>(b.template operand<1>())), dx, false);
      give(place, dx);
    }
    if (b.template wants<1>()) {
      const auto place = b.template place_of<1>();
      const auto dw = images<float>::uninitialized(place.to.shape(), place.to.strides());
      weight_gradient<float>(op, eval(cast<float>(b.template operand<0>())), g, dw, nullptr, false);
      give(place, dw);
    }
    if constexpr (Op::has_bias) {
      if (b.template wants<2>()) {
        const auto place = b.template place_of<2>();
        bias_gradient(g, place.to, place.add);
      }
    }
  }
};

}  // namespace sinter::detail
