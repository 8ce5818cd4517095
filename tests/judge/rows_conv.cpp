// tests/judge/rows_conv.cpp: convolutions.
#include "tables.hpp"

namespace judge {

namespace {

template <int N>
sinter::per_axis<N> each_axis(const shape& values, index_t otherwise) {
  if (values.empty()) return otherwise;
  if (values.size() == 1) return values[0];
  if (values.size() != std::size_t{N}) throw form_not_there{"numbers for other axes"};
  if constexpr (N == 2) return {values[0], values[1]};
  else if constexpr (N == 3) return {values[0], values[1], values[2]};
  else return values[0];
}

/// PyTorch's padding: one number, or one for each axis; ONNX's pads: those in front, then those behind.
template <int N, class In>
sinter::window_padding<N> padding_of(const In& in, const char* names) {
  if (in.onnx()) {
    const shape pads = in.integers("pads");
    for (std::size_t d = 0; 2 * d < pads.size(); ++d)
      if (pads[d] != pads[d + pads.size() / 2]) throw form_not_there{"other padding behind than in front"};
    if (pads.empty()) return 0;
    return each_axis<N>(shape(pads.begin(), pads.begin() + static_cast<std::ptrdiff_t>(pads.size() / 2)), 0);
  }
  if (in.is(names, "s")) {
    if (in.text(names, "") == "same") return sinter::padding::same;
    in.only_text(names, "valid");
    return sinter::padding::valid;
  }
  return each_axis<N>(in.integers(names), 0);
}

/// ONNX may ask for sizes of results: as many as the strides allow, or those of a transposed convolution.
template <int N, class In, class Options>
void set_sizes(const In& in, const sinter::extents<N + 2>& x, const sinter::extents<N + 2>& w, Options& o) {
  const std::string rule = in.text("auto_pad", "NOTSET");
  const shape sizes = in.integers("output_shape");
  shape zeros, more;
  for (int d = 0; d < N; ++d) {
    const index_t n = x[d + 2], reach = (w[d + 2] - 1) * o.dilation[d] + 1, stride = o.stride[d];
    zeros.push_back(std::max<index_t>(((n + stride - 1) / stride - 1) * stride + reach - n, 0));
    if (rule.starts_with("SAME") && zeros.back() % 2 != 0) throw form_not_there{"other padding behind than in front"};
    zeros.back() /= 2;
    if (!sizes.empty()) more.push_back(sizes.at(static_cast<std::size_t>(d)) - (n - 1) * stride - reach);
    if (!sizes.empty() && (more.back() < 0 || more.back() >= stride)) throw form_not_there{"output_shape"};
  }
  if constexpr (requires { o.output_padding; }) {
    if (rule != "NOTSET") throw form_not_there{rule};
    if (!sizes.empty()) o.output_padding = each_axis<N>(more, 0);
  } else if (rule.starts_with("SAME")) {
    o.padding = each_axis<N>(zeros, 0);
  } else if (rule != "NOTSET") {
    throw form_not_there{rule};
  }
}

/// f(x, w[, b]) with the options of the case, for the number of spatial axes that its weights have.
template <class Options, int N, class In, class F>
void convolve(const In& in, F f) {
  const bool module = in.has("self.weight");
  const char* weights = module ? "self.weight" : "1 weight";
  if (in.rank(weights) != N + 2) {
    if constexpr (N < 3) return convolve<typename Options::template next<N + 1>, N + 1>(in, f);
    throw form_not_there{"rank of the weights"};
  } else {
    in.implied("kernel_shape");
    if (module) in.implied("training c0 c1 c2 bias");  // the weights and biases have these sizes
    typename Options::type o;
    o.stride = each_axis<N>(in.integers("stride strides c3"), 1);
    o.padding = padding_of<N>(in, "padding c4");
    o.dilation = each_axis<N>(in.integers("dilation dilations"), 1);
    o.groups = in.integer("groups group", 1);
    if constexpr (requires { o.output_padding; }) {
      o.output_padding = each_axis<N>(in.integers("output_padding"), 0);
    }
    const auto x = in.template x<N + 2>("0"), w = in.template x<N + 2>(weights);
    if (in.onnx()) set_sizes<N>(in, x.shape(), w.shape(), o);
    const char* bias = module ? "self.bias" : "2 bias None";
    if (in.has(bias)) in.give(f(x, w, in.template x<1>(bias), o));
    else in.give(f(x, w, o));
  }
}

template <int N>
struct forward_options {
  using type = sinter::conv_options<N>;
  template <int M>
  using next = forward_options<M>;
};
template <int N>
struct transposed_options {
  using type = sinter::conv_transpose_options<N>;
  template <int M>
  using next = transposed_options<M>;
};

}  // namespace

std::vector<row> conv_rows() {
  return {
      on<float>("op:nn.functional.conv1d op:nn.functional.conv2d op:nn.functional.conv3d nn:Conv1d nn:Conv2d nn:Conv3d "
                "onnx:Conv",
                [](const auto& in) {
                  convolve<forward_options<1>, 1>(in, [](const auto& x, const auto&... a) {
                    constexpr int rank = std::remove_cvref_t<decltype(x)>::rank;
                    if constexpr (rank == 3) return eval(sinter::conv1d(x, a...));
                    else if constexpr (rank == 4) return eval(sinter::conv2d(x, a...));
                    else return eval(sinter::conv3d(x, a...));
                  });
                }),
      on<float>("op:nn.functional.conv_transpose1d op:nn.functional.conv_transpose2d op:nn.functional.conv_transpose3d "
                "nn:ConvTranspose1d nn:ConvTranspose2d nn:ConvTranspose3d onnx:ConvTranspose",
                [](const auto& in) {
                  convolve<transposed_options<1>, 1>(in, [](const auto& x, const auto&... a) {
                    constexpr int rank = std::remove_cvref_t<decltype(x)>::rank;
                    if constexpr (rank == 3) return eval(sinter::conv_transpose1d(x, a...));
                    else if constexpr (rank == 4) return eval(sinter::conv_transpose2d(x, a...));
                    else return eval(sinter::conv_transpose3d(x, a...));
                  });
                }),
  };
}

}  // namespace judge
