// sinter/cuda/resample.hpp: pad and interpolate on GPUs: a thread for each element that is written. Plain kernels, not
// tuned. What is counted along the axes stands in arrays whose indices are constants once loops are unrolled.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/interpolate.hpp"
#include "sinter/ops/pad.hpp"

namespace sinter::cuda_impl {

/// y = x where each result is one element, or `fill`.
template <class T>
struct pick_body {
  ops::resampling shape;
  const T* x;
  T* y;
  T fill;

  SINTER_WORD index_t numel() const { return shape.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      index_t rest = i, from = 0, to = 0;
      bool is_there = true;
      for (int d = shape.rank - 1; d >= 0; --d) {
        const index_t o = rest % shape.axis[d].out;
        rest /= shape.axis[d].out;
        to += o * shape.y_strides[d];
        const auto t = shape.axis[d].template taps<int>(o);
        is_there = is_there && t.count > 0;
        from += t.at[0] * shape.x_strides[d];
      }
      y[to] = is_there ? x[from] : fill;
    }
  }
};

/// y = sums of x, each element of which counts by its taps along at most three axes.
template <class T>
struct blend_body {
  using C = compute_type<T>;
  ops::resampling shape;
  const T* x;
  T* y;

  SINTER_WORD index_t numel() const { return shape.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      index_t rest = i, from = 0, to = 0;
      ops::axis_taps<C> taps[3];
      int blended = 0;
      for (int d = shape.rank - 1; d >= 0; --d) {
        const index_t o = rest % shape.axis[d].out;
        rest /= shape.axis[d].out;
        to += o * shape.y_strides[d];
        ops::axis_taps<C> t = shape.axis[d].template taps<C>(o);
        SINTER_UNROLL
        for (int k = 0; k < 4; ++k) t.at[k] *= shape.x_strides[d];
        if (!shape.axis[d].blends()) {
          from += t.at[0];
          continue;
        }
        SINTER_UNROLL
        for (int k = 0; k < 3; ++k)
          if (k == blended) taps[k] = t;
        ++blended;
      }
      C sum = 0;
      for (int a = 0; a < taps[2].count; ++a)
        for (int b = 0; b < taps[1].count; ++b) {
          const C outer = ops::one_of(taps[2].weight, a) * ops::one_of(taps[1].weight, b);
          const index_t at = from + ops::one_of(taps[2].at, a) + ops::one_of(taps[1].at, b);
          SINTER_UNROLL
          for (int c = 0; c < 4; ++c)
            if (c < taps[0].count) sum += outer * taps[0].weight[c] * static_cast<C>(x[at + taps[0].at[c]]);
        }
      y[to] = static_cast<T>(sum);
    }
  }
};

/// The same by area or with wide weights.
template <class T>
struct blend_windows_body {
  using C = compute_type<T>;
  ops::resampling shape;
  const T* x;
  T* y;

  struct wide_axes {
    int used = 0;
    int axis[3] = {};
    ops::axis_window window[3];
  };
  /// f(offset, weight) for the elements of the window along axis number k of these.
  template <class F>
  SINTER_WORD void each_of(const wide_axes& s, int k, const F& f) const {
    if (k >= s.used) return f(0, C(1));
    const ops::axis_map& m = shape.axis[s.axis[k]];
    for (index_t i = s.window[k].first; i < s.window[k].end; ++i)
      f(i * shape.x_strides[s.axis[k]], static_cast<C>(m.weight(s.window[k], i)));
  }
  SINTER_WORD index_t numel() const { return shape.results(); }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t n = numel();
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      index_t rest = i, from = 0, to = 0;
      wide_axes s;
      for (int d = shape.rank - 1; d >= 0; --d) {
        const ops::axis_map& m = shape.axis[d];
        const index_t o = rest % m.out;
        rest /= m.out;
        to += o * shape.y_strides[d];
        if (!m.is_wide()) {
          from += o * shape.x_strides[d];
          continue;
        }
        const ops::axis_window window = m.window(o);
        SINTER_UNROLL
        for (int k = 0; k < 3; ++k)
          if (k == s.used) {
            s.axis[k] = d;
            s.window[k] = window;
          }
        ++s.used;
      }
      C sum = 0;
      each_of(s, 2, [&](index_t a, C p) {
        each_of(s, 1, [&](index_t b, C q) {
          each_of(s, 0, [&](index_t c, C r) { sum += p * q * r * static_cast<C>(x[from + a + b + c]); });
        });
      });
      y[to] = static_cast<T>(sum);
    }
  }
};

/// dx (+)= the sum of g where x is read.
template <class T>
struct resample_gradient_body {
  using C = compute_type<T>;
  ops::resampling shape;
  const T* g;
  T* dx;
  bool add;

  /// f(offset, weight) for the results that read the element along the axis number k of those with many readers.
  struct many_readers {
    int used = 0;
    int axis[3] = {};
    index_t at[3] = {};
  };
  template <class F>
  SINTER_WORD void each_reader(const many_readers& s, int k, const F& f) const {
    if (k >= s.used) return f(0, C(1));
    const index_t stride = shape.y_strides[s.axis[k]];
    shape.axis[s.axis[k]].template each_reader<C>(s.at[k], [&](index_t o, C weight) { f(o * stride, weight); });
  }

  SINTER_WORD index_t numel() const { return shape.sources(); }
  template <class G>
  SINTER_WORD void operator()(const G& grid) const {
    const index_t n = numel();
    for (index_t i = grid.block() * grid.threads() + grid.thread(); i < n; i += grid.blocks() * grid.threads()) {
      index_t rest = i, from = 0, to = 0;
      bool is_read = true;
      many_readers s;
      for (int d = shape.rank - 1; d >= 0; --d) {
        const ops::axis_map& m = shape.axis[d];
        const index_t at = rest % m.in;
        rest /= m.in;
        to += at * shape.x_strides[d];
        if (m.rule == ops::axis_rule::constant) {  // at most one reader
          const index_t o = at + m.before;
          is_read = is_read && o >= 0 && o < m.out;
          from += o * shape.y_strides[d];
        } else {
          SINTER_UNROLL
          for (int k = 0; k < 3; ++k)
            if (k == s.used) {
              s.axis[k] = d;
              s.at[k] = at;
            }
          ++s.used;
        }
      }
      C sum = 0;
      if (is_read)
        each_reader(s, 2, [&](index_t a, C p) {
          each_reader(s, 1, [&](index_t b, C q) {
            each_reader(s, 0, [&](index_t c, C r) { sum += p * q * r * static_cast<C>(g[from + a + b + c]); });
          });
        });
      dx[to] = static_cast<T>(add ? static_cast<C>(dx[to]) + sum : sum);
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <std::derived_from<ops::resampling_op> Op, device D>
  requires is_cuda_v<D>
struct kernels<Op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const Op& op, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, R, D>& x) {
    const ops::resampling s = ops::resampling_of(op, x, y, true);
    if constexpr (floating_element<T>) {
      if (s.is_wide())
        return cuda_impl::launch_each<D>({Op::name, y.shape()},
                                         cuda_impl::blend_windows_body<T>{s, access::data(x), access::data(y)});
      if (s.blends())
        return cuda_impl::launch_each<D>({Op::name, y.shape()},
                                         cuda_impl::blend_body<T>{s, access::data(x), access::data(y)});
    }
    cuda_impl::launch_each<D>({Op::name, y.shape()},
                              cuda_impl::pick_body<T>{s, access::data(x), access::data(y), op.template fill<T>()});
  }
  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    using T = element_of<decltype(dx.to)>;
    const ops::resampling s = ops::resampling_of(op, dx.to, b.gradient(), false);
    cuda_impl::launch_each<D>(
        {Op::name, dx.to.shape()},
        cuda_impl::resample_gradient_body<T>{s, access::data(b.gradient()), access::data(dx.to), dx.add});
  }
};

}  // namespace sinter::detail
