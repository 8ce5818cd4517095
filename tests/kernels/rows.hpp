// tests/kernels/rows.hpp: the table of kernel ops, one row each: the op over its operands, the same in double with
// plain loops, and the operands' shapes. tests/kernels/table_test.cpp and tests/cuda/kernel_table_test.cpp make their
// checks of the rows.
#pragma once

#include <sinter/sequences.hpp>
#include <sinter/sinter.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "attention.hpp"
#include "pooling.hpp"
#include "recurrence.hpp"
#include "rotary.hpp"
#include "sampling.hpp"

namespace kernel_table {

using namespace sinter;

template <int R>
using numbers = tensor<double, R>;
using line = std::vector<double>;

/// f(line) in place of every line of x along an axis.
template <int R, class F>
numbers<R> on_lines(const numbers<R>& x, int axis, const F& f) {
  const numbers<R> moved = x.transpose(axis, -1).clone().contiguous();
  const index_t n = moved.shape()[R - 1];
  for (index_t at = 0; at < moved.numel(); at += n) {
    line values(moved.data() + at, moved.data() + at + n);
    f(values);
    std::copy(values.begin(), values.end(), moved.data() + at);
  }
  return moved.transpose(axis, -1).contiguous();
}

inline double sum_of(const line& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
inline double mean_of(const line& v) { return sum_of(v) / static_cast<double>(v.size()); }

inline void softmax_of(line& v) {
  const double most = *std::max_element(v.begin(), v.end());
  for (double& x : v) x = std::exp(x - most);
  const double total = sum_of(v);
  for (double& x : v) x /= total;
}
inline void log_softmax_of(line& v) {
  softmax_of(v);
  for (double& x : v) x = std::log(x);
}
inline void rms_norm_of(line& v, double eps) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(v.size()) + eps);
  for (double& x : v) x *= scale;
}
inline void layer_norm_of(line& v, double eps) {
  const double mean = mean_of(v);
  for (double& x : v) x -= mean;
  rms_norm_of(v, eps);
}

/// The columns that the row of gather reads, on D.
template <device D>
tensor<std::int64_t, 2, D> picks() {
  return tensor<std::int64_t, 2>{{0, 6, 6, 2}, {5, 5, 5, 5}, {3, 0, 1, 6}}.template to<D>();
}

inline numbers<2> gathered(const numbers<2>& x) {
  const auto index = picks<cpu>();
  numbers<2> y = zeros<double>(index.shape());
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) y(i, j) = x(i, index(i, j));
  return y;
}

/// The rows of x by their numbers.
inline numbers<3> looked_up(const numbers<2>& x) {
  const auto ids = picks<cpu>();
  numbers<3> y = zeros<double>({3, 4, x.shape()[1]});
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) y[i][j] = x[ids(i, j)];
  return y;
}
/// The rows of picks() in bags, from the places 0, 5, 5 and 11 on; the id 5 is in none.
template <device D>
tensor<std::int64_t, 1, D> bag_offsets() {
  return tensor<std::int64_t, 1>{0, 5, 5, 11}.template to<D>();
}
template <class F>
numbers<2> bagged(const numbers<2>& x, const F& join) {
  const auto ids = picks<cpu>().flatten(), begins = bag_offsets<cpu>();
  numbers<2> y = zeros<double>({4, x.shape()[1]});
  for (index_t b = 0; b < 4; ++b)
    for (index_t c = 0; c < x.shape()[1]; ++c) {
      line values;
      for (index_t p = begins(b); p < (b < 3 ? begins(b + 1) : 12); ++p)
        if (ids(p) != 5) values.push_back(x(ids(p), c));
      if (!values.empty()) y(b, c) = join(values);
    }
  return y;
}
inline double largest_of(const line& v) { return *std::max_element(v.begin(), v.end()); }
/// The sums of the rows of picks(), each times its weight.
inline numbers<2> weighted(const numbers<2>& x, const numbers<2>& w) { return sum(looked_up(x) * w.unsqueeze(2), 1); }

/// Attention whose scores are scaled by 0.3, where query i sees keys up to i + (keys - queries); `bias` of two axes is
/// added.
template <int R>
numbers<R> attended(const numbers<R>& q, const numbers<R>& k, const numbers<R>& v, const numbers<2>& bias = {}) {
  extents<R> shape = q.shape();
  shape[R - 1] = v.shape()[R - 1];
  plain::rules r{0.3, plain::causal(q.shape()[R - 2], k.shape()[R - 2])};
  if (bias.defined()) r.bias = [&](index_t, index_t, index_t i, index_t j) { return bias(i, j); };
  const numbers<R> y = empty<double>(shape);
  const auto of = plain::attention(plain::copy_of(q), plain::copy_of(k), plain::copy_of(v), plain::copy_of(y), r);
  std::copy(of.y.x.begin(), of.y.x.end(), y.data());
  return y;
}
inline constexpr attention_options causal{.causal = true, .scale = 0.3};

/// Targets of 9 rows among 37 classes, on D.
template <device D>
tensor<std::int64_t, 1, D> targets() {
  return tensor<std::int64_t, 1>{3, 36, 0, 5, 5, 11, 36, 20, 1}.template to<D>();
}
/// The losses of the rows of scores, of which those with the target 5 may be ignored.
inline numbers<1> class_losses(const numbers<2>& scores, const linear_cross_entropy_options& o) {
  const auto labels = targets<cpu>();
  const numbers<1> losses = zeros<double>(labels.shape());
  const index_t classes = scores.shape()[1];
  for (index_t i = 0; i < labels.numel(); ++i) {
    if (labels(i) == o.ignore_index) continue;
    double sum = 0, all = 0;
    for (index_t j = 0; j < classes; ++j) {
      sum += std::exp(scores(i, j));
      all += scores(i, j);
    }
    const double lse = std::log(sum), s = o.label_smoothing;
    losses(i) = lse - (1 - s) * scores(i, labels(i)) - s * all / static_cast<double>(classes) + o.z_loss * lse * lse;
  }
  return losses;
}
inline const linear_cross_entropy_options smoothed{.ignore_index = 5, .label_smoothing = 0.2, .z_loss = 0.01},
    recomputed{.ignore_index = 5, .recompute = true};

/// The convolution that `o` describes, of x and w with or without a bias.
template <class... B>
numbers<4> convolved(const numbers<4>& x, const numbers<4>& w, const conv_options<2>& o, const B&... bias) {
  const auto results = [&](int axis) {
    return (x.shape()[axis] + 2 * o.padding.before(axis - 2, 0) - o.dilation[axis - 2] * (w.shape()[axis] - 1) - 1) /
               o.stride[axis - 2] +
           1;
  };
  numbers<4> y = zeros<double>({x.shape()[0], w.shape()[0], results(2), results(3)});
  const index_t filters = w.shape()[0] / o.groups, channels = w.shape()[1];
  const auto at = [&](index_t out, index_t tap, int d) {
    return out * o.stride[d] + tap * o.dilation[d] - o.padding.before(d, 0);
  };
  for (index_t n = 0; n < y.shape()[0]; ++n)
    for (index_t f = 0; f < y.shape()[1]; ++f)
      for (index_t i = 0; i < y.shape()[2]; ++i)
        for (index_t j = 0; j < y.shape()[3]; ++j) {
          double& sum = y(n, f, i, j);
          ((sum += bias(f)), ...);
          for (index_t c = 0; c < channels; ++c)
            for (index_t k = 0; k < w.shape()[2]; ++k)
              for (index_t m = 0; m < w.shape()[3]; ++m) {
                const index_t a = at(i, k, 0), b = at(j, m, 1);
                if (a < 0 || b < 0 || a >= x.shape()[2] || b >= x.shape()[3]) continue;
                sum += x(n, f / filters * channels + c, a, b) * w(f, c, k, m);
              }
        }
  return y;
}
/// The transposed convolution of x and w with a bias: every element of x adds its window of weights to y.
inline numbers<4> transposed(const numbers<4>& x, const numbers<4>& w, const conv_transpose_options<2>& o,
                             const numbers<1>& bias) {
  const auto results = [&](int d) {
    return (x.shape()[d + 2] - 1) * o.stride[d] - 2 * o.padding.before(d, 0) + o.dilation[d] * (w.shape()[d + 2] - 1) +
           o.output_padding[d] + 1;
  };
  const index_t filters = w.shape()[1], inputs = w.shape()[0] / o.groups;
  numbers<4> y = zeros<double>({x.shape()[0], filters * o.groups, results(0), results(1)});
  y.in_place() += bias.reshape({bias.shape()[0], 1, 1});
  for (index_t n = 0; n < x.shape()[0]; ++n)
    for (index_t c = 0; c < x.shape()[1]; ++c)
      for (index_t i = 0; i < x.shape()[2]; ++i)
        for (index_t j = 0; j < x.shape()[3]; ++j)
          for (index_t f = 0; f < filters; ++f)
            for (index_t k = 0; k < w.shape()[2]; ++k)
              for (index_t m = 0; m < w.shape()[3]; ++m) {
                const index_t a = i * o.stride[0] + k * o.dilation[0] - o.padding.before(0, 0);
                const index_t b = j * o.stride[1] + m * o.dilation[1] - o.padding.before(1, 0);
                if (a < 0 || b < 0 || a >= y.shape()[2] || b >= y.shape()[3]) continue;
                y(n, c / inputs * filters + f, a, b) += x(n, c, i, j) * w(c, f, k, m);
              }
  return y;
}
inline const conv_transpose_options<2> spread_out{
    .stride = {2, 3}, .padding = {1, 0}, .output_padding = {1, 2}, .groups = 2, .dilation = {1, 2}};
inline const conv_options<2> strided{.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}},
    grouped{.padding = 1, .groups = 2};

/// Mean and variance of every channel of x.
inline numbers<2> moments_of(const numbers<3>& x) {
  numbers<2> y = zeros<double>({2, x.shape()[1]});
  for (index_t c = 0; c < x.shape()[1]; ++c) {
    line values;
    for (index_t n = 0; n < x.shape()[0]; ++n)
      for (index_t i = 0; i < x.shape()[2]; ++i) values.push_back(x(n, c, i));
    y(0, c) = mean_of(values);
    for (const double v : values) y(1, c) += (v - y(0, c)) * (v - y(0, c)) / static_cast<double>(values.size());
  }
  return y;
}

/// The lines of x along an axis made anew: `out` elements each, sums of the old ones by weight(o, i).
template <int R, class W>
numbers<R> remade(const numbers<R>& x, int axis, index_t out, const W& weight) {
  const numbers<R> from = x.transpose(axis, -1).clone().contiguous();
  extents<R> shape = from.shape();
  const index_t n = shape[R - 1];
  shape[R - 1] = out;
  const numbers<R> to = zeros<double>(shape);
  for (index_t k = 0; k < to.numel(); ++k)
    for (index_t i = 0; i < n; ++i) to.data()[k] += weight(k % out, i) * from.data()[k / out * n + i];
  return to.transpose(axis, -1).contiguous();
}
/// x with the last axes padded as pad does it; rule(at, n) is the element that stands at `at`.
template <int R, class Rule>
numbers<R> padded(numbers<R> x, std::initializer_list<std::pair<index_t, index_t>> amounts, const Rule& rule) {
  int axis = R;
  for (const auto& [before, after] : amounts) {
    const index_t n = x.shape()[--axis], first = before;
    x = remade(x, axis, n + before + after, [&](index_t o, index_t i) { return rule(o - first, n) == i ? 1.0 : 0.0; });
  }
  return x;
}
inline index_t as_it_is(index_t at, index_t) { return at; }
inline index_t mirrored(index_t at, index_t n) { return at < 0 ? -at : at < n ? at : 2 * (n - 1) - at; }
inline index_t kept_inside(index_t at, index_t n) { return std::clamp<index_t>(at, 0, n - 1); }
inline index_t turned(index_t at, index_t n) { return ((at % n) + n) % n; }

/// x with its spatial axes resized; weight(distance) of an element from the position of a result, which lies at most
/// `beyond` outside of the elements.
template <int R, class W>
numbers<R> resized(numbers<R> x, std::initializer_list<index_t> size, bool corners, double beyond, const W& weight) {
  int axis = 2;
  for (const index_t out : size) {
    const index_t n = x.shape()[axis];
    const double in = static_cast<double>(n), outs = static_cast<double>(out);
    x = remade(x, axis++, out, [&](index_t o, index_t i) {
      const double k = static_cast<double>(o);
      double at = corners ? k * (in - 1) / (outs - 1) : (k + 0.5) * in / outs - 0.5, sum = 0;
      at = std::clamp(at, -beyond, in - 1 + beyond);
      for (index_t j = -2; j < n + 2; ++j)
        if (kept_inside(j, n) == i) sum += weight(std::abs(static_cast<double>(j) - at));
      return sum;
    });
  }
  return x;
}
inline double hat(double d) { return d < 1 ? 1 - d : 0; }
inline double keys(double d) {
  if (d <= 1) return 1.25 * d * d * d - 2.25 * d * d + 1;
  return d < 2 ? -0.75 * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

/// By area, or with weights of a distance that are as wide as results lie apart.
template <int R, class Weight>
numbers<R> resized_wide(numbers<R> x, const std::vector<index_t>& to, double reach, const Weight& weight) {
  int axis = 2;
  for (const index_t out : to) {
    const double in = static_cast<double>(x.shape()[axis]), step = in / static_cast<double>(out);
    const auto counted = [&](index_t o, index_t i) {
      const double first = static_cast<double>(o) * step, at = static_cast<double>(i);
      if (reach == 0) return std::floor(first + 1e-9) <= at && at < std::ceil(first + step - 1e-9) ? 1.0 : 0.0;
      return weight(std::abs(at + 0.5 - first - step / 2) / std::max(step, 1.0));
    };
    x = remade(x, axis++, out, [&](index_t o, index_t i) {
      double all = 0;
      for (index_t k = 0; k < static_cast<index_t>(in); ++k) all += counted(o, k);
      return counted(o, i) / all;
    });
  }
  return x;
}
inline double soft_keys(double d) {
  if (d <= 1) return 1.5 * d * d * d - 2.5 * d * d + 1;
  return d < 2 ? -0.5 * (d * d * d - 5 * d * d + 8 * d - 4) : 0;
}

inline const grid_sample_options at_borders{.padding_mode = grid_padding::border},
    in_mirrors{.mode = interpolation::bicubic, .padding_mode = grid_padding::reflection, .align_corners = true};

inline const roi_align_options half_as_large{.spatial_scale = 0.5, .sampling_ratio = 3, .aligned = true};

/// f(n, c, h, w, row, column) for every element of the windows of an image that lies inside of it.
template <class F>
void each_of_windows(const extents<4>& image, const per_axis<2>& kernel, const unfold_options& o, const F& f) {
  const auto blocks = [&](int d) {
    return (image[d + 2] + 2 * o.padding[d] - o.dilation[d] * (kernel[d] - 1) - 1) / o.stride[d] + 1;
  };
  for (index_t row = 0; row < image[1] * kernel[0] * kernel[1]; ++row)
    for (index_t column = 0; column < blocks(0) * blocks(1); ++column) {
      const index_t tap[2] = {row / kernel[1] % kernel[0], row % kernel[1]};
      const index_t block[2] = {column / blocks(1), column % blocks(1)};
      const auto at = [&](int d) { return block[d] * o.stride[d] + tap[d] * o.dilation[d] - o.padding[d]; };
      const index_t h = at(0), w = at(1);
      if (h >= 0 && w >= 0 && h < image[2] && w < image[3])
        for (index_t n = 0; n < image[0]; ++n) f(n, row / (kernel[0] * kernel[1]), h, w, row, column);
    }
}
inline const unfold_options moved{.dilation = {1, 2}, .padding = {0, 1}, .stride = {2, 1}};
inline numbers<3> unfolded(const numbers<4>& x, const extents<3>& shape) {
  const numbers<3> y = zeros<double>(shape);
  each_of_windows(x.shape(), {2, 3}, moved,
                  [&](auto n, auto c, auto h, auto w, auto row, auto column) { y(n, row, column) = x(n, c, h, w); });
  return y;
}
inline numbers<4> folded(const numbers<3>& x, const extents<4>& shape) {
  const numbers<4> y = zeros<double>(shape);
  each_of_windows(shape, {2, 3}, moved,
                  [&](auto n, auto c, auto h, auto w, auto row, auto column) { y(n, c, h, w) += x(n, row, column); });
  return y;
}

/// `reference` takes tensors of double.
template <class Formula, class Reference, int... R>
struct row {
  const char* name;
  Formula formula;
  Reference reference;
  std::tuple<extents<R>...> shapes;
};
template <class Formula, class Reference, int... R>
row<Formula, Reference, R...> make_row(const char* name, Formula f, Reference r, extents<R>... shapes) {
  return {name, f, r, {shapes...}};
}
template <class... N>
extents<sizeof...(N)> shape(N... n) {
  return {{static_cast<index_t>(n)...}};
}

// The result type, so that a test can ask whether the op takes its operands. nvcc compiles no such test, and rejects
// the type: it takes it for another one than that of the formula where options in braces stand in both.
#if defined(__CUDACC__)
#define KERNEL_RESULT(formula)
#else
#define KERNEL_RESULT(formula) ->decltype(formula)
#endif
#define KERNEL_ROW(name, parameters, formula, reference_parameters, reference, ...)                                  \
  check(make_row(                                                                                                    \
      name, [] parameters KERNEL_RESULT(formula) { return formula; }, [] reference_parameters { return reference; }, \
      __VA_ARGS__));

/// check(row) for every row.
template <class Check>
void for_each_row(const Check& check) {
  // clang-format off
  KERNEL_ROW("softmax", (const auto& x), softmax(x, 1), (const numbers<2>& x), on_lines(x, 1, softmax_of), shape(4, 37))
  KERNEL_ROW("softmax along the first axis", (const auto& x), softmax(x, 0), (const numbers<3>& x), on_lines(x, 0, softmax_of), shape(5, 3, 4))
  KERNEL_ROW("softmax of columns", (const auto& x), softmax(x, 1), (const numbers<3>& x), on_lines(x, 1, softmax_of), shape(2, 5, 37))
  KERNEL_ROW("log_softmax of columns", (const auto& x), log_softmax(x, 0), (const numbers<2>& x), on_lines(x, 0, log_softmax_of), shape(70, 16))
  KERNEL_ROW("log_softmax", (const auto& x), log_softmax(x, -1), (const numbers<2>& x), on_lines(x, 1, log_softmax_of), shape(3, 10))
  KERNEL_ROW("layer_norm", (const auto& x), layer_norm(x, 0.01), (const numbers<2>& x), on_lines(x, 1, [](line& v) { layer_norm_of(v, 0.01); }), shape(4, 77))
  KERNEL_ROW("layer_norm of the last two axes", (const auto& x), layer_norm(x, {3, 7}, 0.01), (const numbers<3>& x), on_lines(x.reshape({2, 21}), 1, [](line& v) { layer_norm_of(v, 0.01); }).reshape({2, 3, 7}), shape(2, 3, 7))
  KERNEL_ROW("layer_norm of the last axes, as many as weight and bias have", (const auto& x, const auto& w, const auto& b), layer_norm(x, w, b, 0.01), (const numbers<4>& x, const numbers<3>& w, const numbers<3>& b), eval(on_lines(x.reshape({2, 60}), 1, [](line& v) { layer_norm_of(v, 0.01); }).reshape({2, 3, 4, 5}) * w + b), shape(2, 3, 4, 5), shape(3, 4, 5), shape(3, 4, 5))
  KERNEL_ROW("group_norm", (const auto& x, const auto& w, const auto& b), group_norm(x, 2, w, b, 0.01), (const numbers<4>& x, const numbers<1>& w, const numbers<1>& b), eval(on_lines(x.reshape({6, 30}), 1, [](line& v) { layer_norm_of(v, 0.01); }).reshape({3, 4, 3, 5}) * w.reshape({4, 1, 1}) + b.reshape({4, 1, 1})), shape(3, 4, 3, 5), shape(4), shape(4))
  KERNEL_ROW("rms_norm of the last axes, as many as weight has", (const auto& x, const auto& w), rms_norm(x, w, 0.01), (const numbers<3>& x, const numbers<2>& w), eval(on_lines(x.reshape({2, 40}), 1, [](line& v) { rms_norm_of(v, 0.01); }).reshape({2, 8, 5}) * w), shape(2, 8, 5), shape(8, 5))
  KERNEL_ROW("rms_norm", (const auto& x), rms_norm(x, 0.01), (const numbers<3>& x), on_lines(x, 2, [](line& v) { rms_norm_of(v, 0.01); }), shape(2, 3, 16))
  KERNEL_ROW("gather", (const auto& x), gather(x, 1, picks<device_of<decltype(x)>>()), (const numbers<2>& x), gathered(x), shape(3, 7))
  KERNEL_ROW("embedding", (const auto& x), embedding(picks<device_of<decltype(x)>>(), x), (const numbers<2>& x), looked_up(x), shape(7, 37))
  KERNEL_ROW("embedding_bag, means", (const auto& x), embedding_bag(picks<device_of<decltype(x)>>().flatten(), bag_offsets<device_of<decltype(x)>>(), x, {.padding_idx = 5}), (const numbers<2>& x), bagged(x, mean_of), shape(7, 70))
  KERNEL_ROW("embedding_bag, maxima", (const auto& x), embedding_bag(picks<device_of<decltype(x)>>().flatten(), bag_offsets<device_of<decltype(x)>>(), x, {.mode = bag_mode::max, .padding_idx = -2}), (const numbers<2>& x), bagged(x, largest_of), shape(7, 19))
  KERNEL_ROW("embedding_bag, sums times weights", (const auto& x, const auto& w), embedding_bag(picks<device_of<decltype(x)>>(), x, w, {.mode = bag_mode::sum}), (const numbers<2>& x, const numbers<2>& w), weighted(x, w), shape(7, 37), shape(3, 4))
  KERNEL_ROW("batch_moments", (const auto& x), batch_moments(x), (const numbers<3>& x), moments_of(x), shape(5, 19, 7))
  KERNEL_ROW("conv2d", (const auto& x, const auto& w, const auto& b), conv2d(x, w, b, strided), (const numbers<4>& x, const numbers<4>& w, const numbers<1>& b), convolved(x, w, strided, b), shape(2, 3, 5, 6), shape(4, 3, 3, 2), shape(4))
  KERNEL_ROW("conv2d of a formula", (const auto& x, const auto& w, const auto& b), conv2d(x * 2 - 1, w, b, strided), (const numbers<4>& x, const numbers<4>& w, const numbers<1>& b), convolved(eval(x * 2 - 1), w, strided, b), shape(2, 3, 5, 6), shape(4, 3, 3, 2), shape(4))
  KERNEL_ROW("conv2d of a formula in a mirror", (const auto& x, const auto& w), conv2d(x * 2 - 1, w, {.padding = padding::same, .padding_mode = pad_mode::reflect}), (const numbers<4>& x, const numbers<4>& w), convolved(padded(eval(x * 2 - 1), {{1, 1}, {0, 1}}, mirrored), w, {}), shape(2, 3, 4, 5), shape(4, 3, 2, 3))
  KERNEL_ROW("conv2d in groups, without a bias", (const auto& x, const auto& w), conv2d(x, w, grouped), (const numbers<4>& x, const numbers<4>& w), convolved(x, w, grouped), shape(2, 4, 4, 3), shape(6, 2, 3, 3))
  KERNEL_ROW("conv1d", (const auto& x, const auto& w), conv1d(x, w, {.stride = 2, .padding = 1}), (const numbers<3>& x, const numbers<3>& w), convolved(x.reshape({3, 2, 1, 7}), w.reshape({5, 2, 1, 3}), {.stride = {1, 2}, .padding = {0, 1}}).reshape({3, 5, 4}), shape(3, 2, 7), shape(5, 2, 3))
  KERNEL_ROW("conv_transpose2d", (const auto& x, const auto& w, const auto& b), conv_transpose2d(x, w, b, spread_out), (const numbers<4>& x, const numbers<4>& w, const numbers<1>& b), transposed(x, w, spread_out, b), shape(2, 4, 3, 2), shape(4, 3, 3, 2), shape(6))
  KERNEL_ROW("max_pool2d", (const auto& x), max_pool2d(x, 3, {.stride = 2, .padding = 1}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(7, 3, 2, 1, 1, false), sliding_windows(6, 3, 2, 1, 1, false)}, largest_of_window), shape(2, 85, 7, 6))
  KERNEL_ROW("max_pool2d, dilated, in ceil mode", (const auto& x), max_pool2d(x, {2, 3}, {.stride = {3, 2}, .padding = {1, 0}, .dilation = {1, 2}, .ceil_mode = true}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(6, 2, 3, 1, 1, true), sliding_windows(8, 3, 2, 0, 2, true)}, largest_of_window), shape(2, 3, 6, 8))
  KERNEL_ROW("max_pool1d", (const auto& x), max_pool1d(x, 2), (const numbers<3>& x), pooled<1>(x, {sliding_windows(9, 2, 2, 0, 1, false)}, largest_of_window), shape(3, 4, 9))
  KERNEL_ROW("max_pool3d", (const auto& x), max_pool3d(x, {2, 3, 2}, {.stride = 1}), (const numbers<5>& x), pooled<3>(x, {sliding_windows(3, 2, 1, 0, 1, false), sliding_windows(4, 3, 1, 0, 1, false), sliding_windows(3, 2, 1, 0, 1, false)}, largest_of_window), shape(2, 3, 3, 4, 3))
  KERNEL_ROW("max_pool2d with more than 255 taps", (const auto& x), max_pool2d(x, {17, 16}, {.stride = 1}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(18, 17, 1, 0, 1, false), sliding_windows(17, 16, 1, 0, 1, false)}, largest_of_window), shape(1, 2, 18, 17))
  KERNEL_ROW("max_pool2d_with_indices", (const auto& x), max_pool2d_with_indices(x, 2).values, (const numbers<4>& x), pooled<2>(x, {sliding_windows(4, 2, 2, 0, 1, false), sliding_windows(5, 2, 2, 0, 1, false)}, largest_of_window), shape(2, 3, 4, 5))
  KERNEL_ROW("avg_pool2d", (const auto& x), avg_pool2d(x, 3, {.stride = 2, .padding = 1}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(7, 3, 2, 1, 1, false), sliding_windows(6, 3, 2, 1, 1, false)}, padded_mean_of_window), shape(2, 85, 7, 6))
  KERNEL_ROW("avg_pool2d in ceil mode", (const auto& x), avg_pool2d(x, {3, 2}, {.stride = 2, .padding = {1, 1}, .ceil_mode = true}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(6, 3, 2, 1, 1, true), sliding_windows(5, 2, 2, 1, 1, true)}, padded_mean_of_window), shape(2, 3, 6, 5))
  KERNEL_ROW("avg_pool2d without padding in its count", (const auto& x), avg_pool2d(x, 3, {.stride = 1, .padding = 1, .count_include_pad = false}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(4, 3, 1, 1, 1, false), sliding_windows(3, 3, 1, 1, 1, false)}, mean_of_window), shape(2, 3, 4, 3))
  KERNEL_ROW("avg_pool2d, dilated, in ceil mode", (const auto& x), avg_pool2d(x, {2, 3}, {.stride = {3, 2}, .padding = {1, 0}, .ceil_mode = true, .dilation = {1, 2}}), (const numbers<4>& x), pooled<2>(x, {sliding_windows(6, 2, 3, 1, 1, true), sliding_windows(8, 3, 2, 0, 2, true)}, padded_mean_of_window), shape(2, 3, 6, 8))
  KERNEL_ROW("avg_pool1d", (const auto& x), avg_pool1d(x, 3, {.stride = 1, .padding = 1}), (const numbers<3>& x), pooled<1>(x, {sliding_windows(9, 3, 1, 1, 1, false)}, padded_mean_of_window), shape(3, 4, 9))
  KERNEL_ROW("avg_pool3d divided by 2", (const auto& x), avg_pool3d(x, 2, {.stride = {1, 2, 1}, .divisor_override = 2}), (const numbers<5>& x), pooled<3>(x, {sliding_windows(3, 2, 1, 0, 1, false), sliding_windows(4, 2, 2, 0, 1, false), sliding_windows(3, 2, 1, 0, 1, false)}, half_of_window), shape(2, 3, 3, 4, 3))
  KERNEL_ROW("adaptive_avg_pool2d", (const auto& x), adaptive_avg_pool2d(x, {3, keep_extent}), (const numbers<4>& x), pooled<2>(x, {adaptive_windows(7, 3), adaptive_windows(4, 4)}, mean_of_window), shape(2, 5, 7, 4))
  KERNEL_ROW("adaptive_avg_pool2d to 1", (const auto& x), adaptive_avg_pool2d(x, 1), (const numbers<4>& x), pooled<2>(x, {adaptive_windows(5, 1), adaptive_windows(6, 1)}, mean_of_window), shape(2, 70, 5, 6))
  KERNEL_ROW("adaptive_avg_pool1d", (const auto& x), adaptive_avg_pool1d(x, 4), (const numbers<3>& x), pooled<1>(x, {adaptive_windows(6, 4)}, mean_of_window), shape(2, 3, 6))
  KERNEL_ROW("adaptive_max_pool2d", (const auto& x), adaptive_max_pool2d(x, {3, 5}), (const numbers<4>& x), pooled<2>(x, {adaptive_windows(7, 3), adaptive_windows(3, 5)}, largest_of_window), shape(2, 5, 7, 3))
  KERNEL_ROW("adaptive_max_pool3d", (const auto& x), adaptive_max_pool3d(x, {2, 1, 3}), (const numbers<5>& x), pooled<3>(x, {adaptive_windows(3, 2), adaptive_windows(4, 1), adaptive_windows(4, 3)}, largest_of_window), shape(2, 3, 3, 4, 4))
  KERNEL_ROW("pad", (const auto& x), pad(x, {1, -1, 0, 2, -1, 1}), (const numbers<4>& x), padded(x, {{1, -1}, {0, 2}, {-1, 1}}, as_it_is), shape(2, 3, 4, 5))
  KERNEL_ROW("pad by reflection", (const auto& x), pad(x, {2, 1, 0, 3}, pad_mode::reflect), (const numbers<4>& x), padded(x, {{2, 1}, {0, 3}}, mirrored), shape(2, 3, 4, 5))
  KERNEL_ROW("pad by replication", (const auto& x), pad(x, {7, 2}, pad_mode::replicate), (const numbers<3>& x), padded(x, {{7, 2}}, kept_inside), shape(2, 3, 4))
  KERNEL_ROW("pad around", (const auto& x), pad(x, {3, 1, 4, 2}, pad_mode::circular), (const numbers<4>& x), padded(x, {{3, 1}, {4, 2}}, turned), shape(2, 3, 4, 5))
  KERNEL_ROW("interpolate, nearest", (const auto& x), interpolate(x, {.size = {8, 3}, .mode = interpolation::nearest_exact}), (const numbers<4>& x), resized(x, {8, 3}, false, 0.5, [](double d) { return d < 0.5 ? 1.0 : 0.0; }), shape(2, 3, 4, 5))
  KERNEL_ROW("interpolate, bilinear", (const auto& x), interpolate(x, {.size = {7, 3}, .mode = interpolation::bilinear}), (const numbers<4>& x), resized(x, {7, 3}, false, 0, hat), shape(2, 3, 4, 5))
  KERNEL_ROW("interpolate, trilinear between corners", (const auto& x), interpolate(x, {.size = {3, 5, 4}, .mode = interpolation::trilinear, .align_corners = true}), (const numbers<5>& x), resized(x, {3, 5, 4}, true, 0, hat), shape(1, 2, 2, 3, 5))
  KERNEL_ROW("interpolate, bicubic", (const auto& x), interpolate(x, {.size = {6, 2}, .mode = interpolation::bicubic}), (const numbers<4>& x), resized(x, {6, 2}, false, 1, keys), shape(2, 3, 4, 5))
  KERNEL_ROW("interpolate, places of ONNX", (const auto& x), interpolate(x, {.size = {8, 3}, .places = pixel_places::half_pixel, .nearest_mode = pixel_rounding::prefer_ceil}), (const numbers<4>& x), resized(x, {8, 3}, false, 0.5, [](double d) { return d < 0.5 ? 1.0 : 0.0; }), shape(2, 3, 4, 5))
  KERNEL_ROW("interpolate, area", (const auto& x), interpolate(x, {.size = {3, 7}, .mode = interpolation::area}), (const numbers<4>& x), resized_wide(x, {3, 7}, 0, hat), shape(2, 3, 5, 4))
  KERNEL_ROW("interpolate, bilinear with antialias", (const auto& x), interpolate(x, {.size = {3, 9}, .mode = interpolation::bilinear, .antialias = true}), (const numbers<4>& x), resized_wide(x, {3, 9}, 1, hat), shape(2, 3, 8, 5))
  KERNEL_ROW("interpolate, bicubic with antialias", (const auto& x), interpolate(x, {.size = {7, 2}, .mode = interpolation::bicubic, .antialias = true}), (const numbers<4>& x), resized_wide(x, {7, 2}, 2, soft_keys), shape(1, 2, 7, 9))
  KERNEL_ROW("grid_sample", (const auto& x, const auto& grid), grid_sample(x, grid), (const numbers<4>& x, const numbers<4>& grid), sampled(x, grid, {}), shape(2, 10, 4, 5), shape(2, 3, 30, 2))
  KERNEL_ROW("grid_sample, bicubic in a mirror", (const auto& x, const auto& grid), grid_sample(x, grid * 2, in_mirrors), (const numbers<4>& x, const numbers<4>& grid), sampled(x, eval(grid * 2), in_mirrors), shape(2, 3, 4, 5), shape(2, 2, 3, 2))
  KERNEL_ROW("grid_sample of volumes, up to their borders", (const auto& x, const auto& grid), grid_sample(x, grid * 2, at_borders), (const numbers<5>& x, const numbers<5>& grid), sampled(x, eval(grid * 2), at_borders), shape(1, 2, 3, 4, 2), shape(1, 2, 2, 3, 3))
  KERNEL_ROW("roi_align", (const auto& x), roi_align(x, regions_for(x), {2, 3}), (const numbers<4>& x), regions_of(x, 2, 3, {}), shape(2, 10, 4, 5))
  KERNEL_ROW("roi_align, aligned", (const auto& x), roi_align(x, regions_for(x), {3, 2}, half_as_large), (const numbers<4>& x), regions_of(x, 3, 2, half_as_large), shape(2, 3, 4, 5))
  KERNEL_ROW("unfold", (const auto& x), unfold(x, {2, 3}, moved), (const numbers<4>& x), unfolded(x, {{2, 18, 8}}), shape(2, 3, 5, 6))
  KERNEL_ROW("fold", (const auto& x), fold(x, {5, 6}, {2, 3}, moved), (const numbers<3>& x), folded(x, {{2, 3, 5, 6}}), shape(2, 18, 8))
  KERNEL_ROW("conv2d in a mirror", (const auto& x, const auto& w), conv2d(x, w, {.padding = padding::same, .padding_mode = pad_mode::reflect}), (const numbers<4>& x, const numbers<4>& w), convolved(padded(x, {{1, 1}, {0, 1}}, mirrored), w, {}), shape(2, 3, 4, 5), shape(4, 3, 2, 3))
  KERNEL_ROW("lstm_steps", (const auto& x, const auto& w, const auto& h, const auto& c), lstm_steps(uneven_steps(), x, w, h, c), (const numbers<2>& x, const numbers<2>& w, const numbers<2>& h, const numbers<2>& c), recurrence_of(lstm_unit, false, x, w, numbers<2>(), h, c, numbers<2>()), shape(8, 20), shape(20, 5), shape(4, 5), shape(4, 5))
  KERNEL_ROW("lstm_steps with a projection, from the end", (const auto& x, const auto& w, const auto& h, const auto& c, const auto& p), lstm_steps(uneven_steps().reversed(), x, w, h, c, p), (const numbers<2>& x, const numbers<2>& w, const numbers<2>& h, const numbers<2>& c, const numbers<2>& p), recurrence_of(lstm_unit, true, x, w, numbers<2>(), h, c, p), shape(8, 20), shape(20, 3), shape(4, 3), shape(4, 5), shape(3, 5))
  KERNEL_ROW("gru_steps", (const auto& x, const auto& w, const auto& b, const auto& h), gru_steps(uneven_steps(), x, w, b, h), (const numbers<2>& x, const numbers<2>& w, const numbers<2>& b, const numbers<2>& h), recurrence_of(gru_unit, false, x, w, b, h, numbers<2>(), numbers<2>()), shape(8, 15), shape(15, 5), shape(1, 15), shape(4, 5))
  KERNEL_ROW("rnn_steps, from the end", (const auto& x, const auto& w, const auto& h), rnn_steps(uneven_steps().reversed(), x, w, h), (const numbers<2>& x, const numbers<2>& w, const numbers<2>& h), recurrence_of(rnn_unit, true, x, w, numbers<2>(), h, numbers<2>(), numbers<2>()), shape(8, 5), shape(5, 5), shape(4, 5))
  KERNEL_ROW("rotary", (const auto& x), rotary_of(x, 6, false), (const numbers<4>& x), positioned(x, 6, false), shape(2, 3, 5, 40))
  KERNEL_ROW("rotary of the first elements, in pairs of neighbours", (const auto& x), rotary_of(x, 6, true, 10), (const numbers<3>& x), positioned(x, 6, true, 10), shape(2, 5, 14))
  KERNEL_ROW("rotary of samples with positions of their own", (const auto& x), rotary(x, apart(x).first, apart(x).second), (const numbers<3>& x), concat(0, positioned(x.slice(0, 0, 1), 0, false), positioned(x.slice(0, 1, 2), 5, false)), shape(2, 5, 6))
  KERNEL_ROW("attention", (const auto& q, const auto& k, const auto& v), attention(q, k, v, causal), (const numbers<3>& q, const numbers<3>& k, const numbers<3>& v), attended(q, k, v), shape(2, 5, 4), shape(2, 7, 4), shape(2, 7, 3))
  KERNEL_ROW("attention with a mask that is added, of heads in groups", (const auto& q, const auto& k, const auto& v, const auto& m), attention(q, k, v, m, causal), (const numbers<4>& q, const numbers<4>& k, const numbers<4>& v, const numbers<2>& m), attended(q, k, v, m), shape(1, 4, 5, 4), shape(1, 2, 7, 4), shape(1, 2, 7, 3), shape(5, 7))
  KERNEL_ROW("linear_cross_entropy", (const auto& x, const auto& w, const auto& b), linear_cross_entropy(x, w, b, targets<device_of<decltype(x)>>()), (const numbers<2>& x, const numbers<2>& w, const numbers<1>& b), eval(mean(class_losses(eval(linear(x, w, b)), {}))), shape(9, 5), shape(37, 5), shape(37))
  KERNEL_ROW("linear_cross_entropy without a bias, row by row", (const auto& x, const auto& w), linear_cross_entropy(x, w, targets<device_of<decltype(x)>>(), {}, reduction::none), (const numbers<2>& x, const numbers<2>& w), class_losses(eval(linear(x, w)), {}), shape(9, 5), shape(37, 5))
  KERNEL_ROW("linear_cross_entropy with smoothing and ignored targets", (const auto& x, const auto& w, const auto& b), linear_cross_entropy(x, w, b, targets<device_of<decltype(x)>>(), smoothed), (const numbers<2>& x, const numbers<2>& w, const numbers<1>& b), eval(sum(class_losses(eval(linear(x, w, b)), smoothed)) / 7), shape(9, 5), shape(37, 5), shape(37))
  KERNEL_ROW("linear_cross_entropy of scores computed again", (const auto& x, const auto& w, const auto& b), linear_cross_entropy(x, w, b, targets<device_of<decltype(x)>>(), recomputed, reduction::sum), (const numbers<2>& x, const numbers<2>& w, const numbers<1>& b), eval(sum(class_losses(eval(linear(x, w, b)), recomputed))), shape(9, 5), shape(37, 5), shape(37))
  // clang-format on
}

}  // namespace kernel_table
