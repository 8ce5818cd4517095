// tests/judge/rows_pool.cpp: pooling.
#include <limits>

#include "tables.hpp"

namespace judge {

namespace {

/// One number, or one for each of N axes; `otherwise` where there are none.
template <int N>
sinter::per_axis<N> each_axis(const shape& s, index_t otherwise) {
  if (s.empty()) return otherwise;
  if (s.size() == 1) return s[0];
  if (s.size() != std::size_t{N}) throw form_not_there{"numbers for other axes"};
  if constexpr (N == 2) return {s[0], s[1]};
  else if constexpr (N == 3) return {s[0], s[1], s[2]};
  else return s[0];
}

/// PyTorch has the same numbers in front and behind; ONNX has them twice, or asks for as many as the strides need.
template <int N, class In>
sinter::per_axis<N> padding_of(const In& in, const char* names, const sinter::extents<N + 2>& x,
                               const sinter::per_axis<N>& kernel, const sinter::per_axis<N>& stride,
                               const sinter::per_axis<N>& dilation) {
  if (!in.onnx()) return each_axis<N>(in.integers(names), 0);
  const std::string rule = in.text("auto_pad", "NOTSET");
  shape zeros = in.integers("pads");
  const std::size_t n = std::size_t{N};
  if (rule.starts_with("SAME")) {
    for (int d = 0; d < N; ++d) {
      const index_t results = (x[d + 2] + stride[d] - 1) / stride[d];
      const index_t all = (results - 1) * stride[d] + (kernel[d] - 1) * dilation[d] + 1 - x[d + 2];
      if (all > 0 && all % 2 != 0) throw form_not_there{"more padding on one side"};
      zeros.push_back(all > 0 ? all / 2 : 0);
    }
  } else if (!zeros.empty()) {
    for (std::size_t d = 0; d < n; ++d)
      if (zeros.at(d) != zeros.at(d + n)) throw form_not_there{"more padding on one side"};
    zeros.resize(n);
  }
  return each_axis<N>(zeros, 0);
}

/// PyTorch's default stride is the kernel, ONNX's is 1.
template <int N, class In>
sinter::pool_stride<N> stride_of(const In& in, const char* names, sinter::per_axis<N>& numbers) {
  const shape given = in.integers(names);
  if (given.empty() && !in.onnx()) return {};
  numbers = each_axis<N>(given, 1);
  if constexpr (N == 1) return numbers[0];
  else if constexpr (N == 2) return {numbers[0], numbers[1]};
  else return {numbers[0], numbers[1], numbers[2]};
}

/// Padding that is wider than the library's, or has more on one side, laid around x before. `value` is what it holds.
template <int N, class In, class X>
X padded_before(const In& in, const X& x, const sinter::per_axis<N>& kernel, const sinter::per_axis<N>& stride,
                const sinter::per_axis<N>& dilation, double value) {
  const std::string rule = in.text("auto_pad", "NOTSET");
  const shape given = in.integers("pads");
  const std::size_t n = std::size_t{N};
  shape amounts;
  bool fits = true;
  for (std::size_t d = n; d-- > 0;) {
    const int axis = static_cast<int>(d);
    index_t before = given.empty() ? 0 : given.at(d), after = given.empty() ? 0 : given.at(d + n);
    if (rule.starts_with("SAME")) {
      const index_t extent = x.shape()[axis + 2], results = (extent + stride[axis] - 1) / stride[axis];
      const index_t all =
          std::max<index_t>((results - 1) * stride[axis] + (kernel[axis] - 1) * dilation[axis] + 1 - extent, 0);
      before = rule == "SAME_LOWER" ? all - all / 2 : all / 2;
      after = all - before;
    }
    fits = fits && before == after && before <= kernel[axis] / 2;
    amounts.push_back(before);
    amounts.push_back(after);
  }
  return fits ? x : eval(pad(x, amounts, sinter::pad_mode::constant, value));
}

template <int N, class In, class X>
void max_pooled(const In& in, const X& given) {
  const bool is_module = in.has("c0");
  if (is_module) in.implied("training");
  const auto kernel = each_axis<N>(in.integers("kernel_size kernel_shape c0"), 1);
  sinter::per_axis<N> stride = kernel;
  sinter::max_pool_options<N> o;
  o.stride = stride_of<N>(in, "stride strides c1 None", stride);
  o.dilation = each_axis<N>(in.integers("dilation dilations c3"), 1);
  const X x = in.onnx() && in.results() == 1
                  ? padded_before<N>(in, given, kernel, stride, o.dilation, -std::numeric_limits<double>::infinity())
                  : given;
  if (x.shape() == given.shape()) o.padding = padding_of<N>(in, "padding c2", x.shape(), kernel, stride, o.dilation);
  o.ceil_mode = in.flag("ceil_mode c5", false);
  in.only("storage_order", 0);
  // ONNX counts in all planes together, so its indices are these with one plane.
  const bool indices = in.onnx() ? in.results() == 2 : in.flag("return_indices c4", false);
  if (indices && in.onnx() && x.shape()[0] * x.shape()[1] != 1) throw form_not_there{"indices"};
  const bool layer = is_module && !indices;  // with indices a pooling layer is the function
  if constexpr (N == 1) {
    if (layer) in.give(sinter::nn::max_pool1d(kernel, o)(x));
    else if (indices) in.give(max_pool1d_with_indices(x, kernel, o));
    else in.give(max_pool1d(x, kernel, o));
  } else if constexpr (N == 2) {
    if (layer) in.give(sinter::nn::max_pool2d(kernel, o)(x));
    else if (indices) in.give(max_pool2d_with_indices(x, kernel, o));
    else in.give(max_pool2d(x, kernel, o));
  } else {
    if (layer) in.give(sinter::nn::max_pool3d(kernel, o)(x));
    else if (indices) in.give(max_pool3d_with_indices(x, kernel, o));
    else in.give(max_pool3d(x, kernel, o));
  }
}

template <int N, class In, class X>
void avg_pooled(const In& in, const X& x) {
  const auto kernel = each_axis<N>(in.integers("1 kernel_size kernel_shape"), 1);
  sinter::per_axis<N> stride = kernel;
  sinter::avg_pool_options<N> o;
  o.stride = stride_of<N>(in, "2 stride strides None", stride);
  o.dilation = each_axis<N>(in.integers("dilations"), 1);
  o.padding = padding_of<N>(in, "3 padding", x.shape(), kernel, stride, o.dilation);
  o.ceil_mode = in.flag("4 ceil_mode", false);
  o.count_include_pad = in.flag("5 count_include_pad", !in.onnx());
  if (in.has("6 divisor_override None")) o.divisor_override = in.integer("6 divisor_override", 1);
  if constexpr (N == 1) in.give(avg_pool1d(x, kernel, o));
  else if constexpr (N == 2) in.give(avg_pool2d(x, kernel, o));
  else in.give(avg_pool3d(x, kernel, o));
}

/// ONNX takes magnitudes.
template <int N, class In, class X>
void lp_pooled(const In& in, const X& x) {
  const auto kernel = each_axis<N>(in.integers("kernel_shape"), 1);
  sinter::per_axis<N> stride = kernel;
  sinter::max_pool_options<N> o;
  o.stride = stride_of<N>(in, "strides", stride);
  o.dilation = each_axis<N>(in.integers("dilations"), 1);
  in.only("ceil_mode", 0, 0);
  const double p = in.number("p", 2);
  const X around = padded_before<N>(in, x, kernel, stride, o.dilation, 0);
  if (around.shape() == x.shape()) o.padding = padding_of<N>(in, "pads", x.shape(), kernel, stride, o.dilation);
  if constexpr (N == 1) in.give(lp_pool1d(abs(around), p, kernel, o));
  else if constexpr (N == 2) in.give(lp_pool2d(abs(around), p, kernel, o));
  else in.give(lp_pool3d(abs(around), p, kernel, o));
}

template <int N, bool Max>
row adaptive(const char* names) {
  return on<float>(names, [](const auto& in) {
    const auto x = in.template x<N + 2>("0 input");
    const bool is_module = in.has("c0");
    if (is_module) in.implied("training");
    const auto size = each_axis<N>(in.integers_or_none("1 output_size c0", sinter::keep_extent), 1);
    const bool indices = in.flag("2 return_indices", false);
    if constexpr (!Max) {
      if constexpr (N == 1) in.give(adaptive_avg_pool1d(x, size));
      else if constexpr (N == 3) in.give(adaptive_avg_pool3d(x, size));
      else if (is_module) in.give(sinter::nn::adaptive_avg_pool2d(size)(x));
      else in.give(adaptive_avg_pool2d(x, size));
    } else if constexpr (N == 1) {
      if (indices) in.give(adaptive_max_pool1d_with_indices(x, size));
      else in.give(adaptive_max_pool1d(x, size));
    } else if constexpr (N == 2) {
      if (indices) in.give(adaptive_max_pool2d_with_indices(x, size));
      else in.give(adaptive_max_pool2d(x, size));
    } else {
      if (indices) in.give(adaptive_max_pool3d_with_indices(x, size));
      else in.give(adaptive_max_pool3d(x, size));
    }
  });
}

/// F of x with as many axes as the case has, 3 to 5.
template <class F>
row by_axes(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const int rank = in.rank("0");
    if (rank == 3) F{}(in, in.template x<3>("0"), std::integral_constant<int, 1>());
    else if (rank == 4) F{}(in, in.template x<4>("0"), std::integral_constant<int, 2>());
    else if (rank == 5) F{}(in, in.template x<5>("0"), std::integral_constant<int, 3>());
    else throw form_not_there{"rank"};
  });
}

/// PyTorch's output_size may have the axes of the batch and the channels in front.
template <int N, class In, class X>
void max_unpooled(const In& in, const X& x) {
  const auto indices = in.template constant<std::int64_t, N + 2>("1");
  const auto kernel = each_axis<N>(in.integers("kernel_size kernel_shape"), 1);
  sinter::per_axis<N> stride = kernel;
  sinter::max_unpool_options<N> o;
  o.stride = stride_of<N>(in, "stride strides None", stride);
  o.padding = each_axis<N>(in.integers("padding"), 0);
  if (in.onnx() && in.has("2")) throw form_not_there{"indices of another plane than the result's"};
  shape size = in.integers("output_size None");
  if (size.size() == std::size_t{N + 2}) size.erase(size.begin(), size.begin() + 2);
  o.output_size = each_axis<N>(size, 0);
  if constexpr (N == 1) in.give(max_unpool1d(x, indices, kernel, o));
  else if constexpr (N == 2) in.give(max_unpool2d(x, indices, kernel, o));
  else in.give(max_unpool3d(x, indices, kernel, o));
}

#define POOL_ROW(names, axes, function) \
  on<float>(names, [](const auto& in) { function<axes>(in, in.template x<axes + 2>("0 input")); })

}  // namespace

std::vector<row> pool_rows() {
  return {
      POOL_ROW("op:nn.functional.max_pool1d nn:MaxPool1d", 1, max_pooled),
      POOL_ROW("op:nn.functional.max_pool2d nn:MaxPool2d", 2, max_pooled),
      POOL_ROW("op:nn.functional.max_pool3d nn:MaxPool3d", 3, max_pooled),
      POOL_ROW("op:nn.functional.avg_pool1d", 1, avg_pooled),
      POOL_ROW("op:nn.functional.avg_pool2d", 2, avg_pooled),
      POOL_ROW("op:nn.functional.avg_pool3d", 3, avg_pooled),
      adaptive<1, false>("op:nn.functional.adaptive_avg_pool1d"),
      adaptive<2, false>("op:nn.functional.adaptive_avg_pool2d nn:AdaptiveAvgPool2d"),
      adaptive<3, false>("op:nn.functional.adaptive_avg_pool3d"),
      adaptive<1, true>("op:nn.functional.adaptive_max_pool1d"),
      adaptive<2, true>("op:nn.functional.adaptive_max_pool2d"),
      adaptive<3, true>("op:nn.functional.adaptive_max_pool3d"),
      POOL_ROW("op:nn.functional.max_unpool1d op:nn.functional.max_unpool1d.grad", 1, max_unpooled),
      POOL_ROW("op:nn.functional.max_unpool2d op:nn.functional.max_unpool2d.grad", 2, max_unpooled),
      POOL_ROW("op:nn.functional.max_unpool3d op:nn.functional.max_unpool3d.grad", 3, max_unpooled),
      by_axes("onnx:MaxUnpool",
              [](const auto& in, const auto& x, auto axes) { max_unpooled<decltype(axes)::value>(in, x); }),
      by_axes("onnx:MaxPool",
              [](const auto& in, const auto& x, auto axes) { max_pooled<decltype(axes)::value>(in, x); }),
      by_axes("onnx:AveragePool",
              [](const auto& in, const auto& x, auto axes) { avg_pooled<decltype(axes)::value>(in, x); }),
      by_axes("onnx:LpPool", [](const auto& in, const auto& x, auto axes) { lp_pooled<decltype(axes)::value>(in, x); }),
      on<float>("onnx:GlobalAveragePool",
                [](const auto& in) { in.give(adaptive_avg_pool2d(in.template x<4>("0"), 1)); }),
      on<float>("onnx:GlobalMaxPool", [](const auto& in) { in.give(adaptive_max_pool2d(in.template x<4>("0"), 1)); }),
  };
}

}  // namespace judge
