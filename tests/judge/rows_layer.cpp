// tests/judge/rows_layer.cpp: matrix products and layers.
#include "tables.hpp"

namespace judge {

namespace {

/// f of the number of axes that a norm of rows takes, from 1 to 4, as a type.
template <int Least = 1, class F>
void by_axes(index_t axes, F f) {
  if (axes == Least) f(std::integral_constant<int, Least>());
  else if constexpr (Least < 4) by_axes<Least + 1>(axes, f);
  else throw form_not_there{std::to_string(axes) + " axes"};
}

/// Means of the last K axes and the reciprocals of their standard deviations.
template <int K, class In, class X>
void give_moments(const In& in, const X& x, double eps) {
  index_t axes[std::size_t{K}];
  for (int k = 0; k < K; ++k) axes[k] = 4 - K + k;
  const auto middle = sinter::eval(mean(x, axes, sinter::keepdim));
  in.give(middle);
  in.give(rsqrt(mean(square(x - middle), axes, sinter::keepdim) + static_cast<float>(eps)));
}

/// Norms of the last axes, scaled by weights and shifted by biases where F takes one.
template <bool Bias, class F>
row norm_of_rows(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const shape rows = in.integers(in.onnx() ? "" : "1 normalized_shape");
    const index_t axes = in.onnx() ? 4 - (in.axis("axis", -1) + 4) % 4 : static_cast<index_t>(rows.size());
    const char* weight = in.onnx() ? "1" : "2 weight None";
    const char* bias = in.onnx() ? "2" : "3 bias None";
    const double e = in.number(in.onnx() ? "epsilon" : "4 eps", 1e-5);
    if (e < 0) throw form_not_there{"a negative eps"};
    by_axes(axes, [&](auto count) {
      constexpr int K = decltype(count)::value;
      const auto x = in.template x<4>("0");
      const bool weighs = in.has(weight), shifts = in.has(bias);
      if (!weighs) {
        const auto y = F{}(x, in.template shown<K>(rows), e);
        if (shifts) in.give(y + in.template x<K>(bias));
        else in.give(y);
      } else {
        const auto w = in.template x<K>(weight);
        if constexpr (Bias) {
          if (shifts) in.give(F{}(x, w, in.template x<K>(bias), e));
          else in.give(F{}(x, w, e));
        } else {
          in.give(F{}(x, w, e));
        }
      }
      if (in.results() == 3) give_moments<K>(in, x, e);
    });
  });
}

}  // namespace

std::vector<row> layer_rows() {
  return {
      on<float>("op:matmul onnx:MatMul",
                [](const auto& in) {
                  by_rank(in, "0", [&](auto a) {
                    by_rank(in, "1", [&](auto b) {
                      const auto x = in.template x<decltype(a)::value>("0");
                      const auto y = in.template x<decltype(b)::value>("1");
                      in.give(matmul(x, y));
                    });
                  });
                }),
      on<float>("onnx:Gemm",
                [](const auto& in) {
                  const auto turned = [&](const char* names, const char* flag) {
                    const auto x = in.template x<2>(names);
                    return in.flag(flag, false) ? x.transpose() : x;
                  };
                  const auto product =
                      matmul(turned("0", "transA"), turned("1", "transB")) * static_cast<float>(in.number("alpha", 1));
                  if (in.has("2")) in.give(product + static_cast<float>(in.number("beta", 1)) * in.template x<2>("2"));
                  else in.give(product);
                }),
      on<float>("op:mv", [](const auto& in) { in.give(mv(in.template x<2>("0"), in.template x<1>("1"))); }),
      on<float>("op:dot op:inner", [](const auto& in) { in.give(dot(in.template x<1>("0"), in.template x<1>("1"))); }),
      on<float>("op:nn.functional.linear",
                [](const auto& in) {
                  if (in.rank("1 weight") != 2) throw form_not_there{"weights of one output"};
                  by_rank(in, "0", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    const auto w = in.template x<2>("1 weight");
                    if (in.has("2 bias None")) in.give(linear(x, w, in.template x<1>("2 bias")));
                    else in.give(linear(x, w));
                  });
                }),
      on<float>("nn:Linear",
                [](const auto& in) {
                  sinter::generator gen(1);
                  const index_t inputs = in.integer("c0", 0), outputs = in.integer("c1", 0);
                  in.implied("training bias");
                  by_rank(in, "0 input", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0 input");
                    if (in.has("self.bias")) {
                      sinter::nn::linear fc(inputs, outputs, gen);
                      fc.weight = in.template x<2>("self.weight");
                      fc.bias = in.template x<1>("self.bias");
                      in.give(fc(x));
                    } else {
                      sinter::nn::linear fc(inputs, outputs, gen, sinter::nn::no_bias);
                      fc.weight = in.template x<2>("self.weight");
                      in.give(fc(x));
                    }
                  });
                }),
      on<float>("nn:Bilinear",
                [](const auto& in) {
                  sinter::generator gen(1);
                  const index_t first = in.integer("c0", 0), second = in.integer("c1", 0),
                                outputs = in.integer("c2", 0);
                  in.implied("training bias");
                  by_rank(in, "0", [&](auto rank) {
                    const auto a = in.template x<decltype(rank)::value>("0"),
                               b = in.template x<decltype(rank)::value>("1");
                    const auto give = [&](auto layer) {
                      layer.weight = in.template x<3>("self.weight");
                      if (in.has("self.bias")) layer.bias = in.template x<1>("self.bias");
                      in.give(layer(a, b));
                    };
                    if (in.has("self.bias")) give(sinter::nn::bilinear(first, second, outputs, gen));
                    else give(sinter::nn::bilinear(first, second, outputs, gen, sinter::nn::no_bias));
                  });
                }),
      norm_of_rows<true>("op:nn.functional.layer_norm op:native_layer_norm onnx:LayerNormalization",
                         [](const auto&... a) { return sinter::layer_norm(a...); }),
      norm_of_rows<false>("onnx:RMSNormalization", [](const auto&... a) { return sinter::rms_norm(a...); }),
      on<float>("op:nn.functional.embedding_bag",
                [](const auto& in) {
                  const auto table = in.template x<2>("0");
                  sinter::embedding_bag_options o;
                  const std::string mode = in.text("mode", "mean");
                  if (mode == "sum") o.mode = sinter::bag_mode::sum;
                  else if (mode == "max") o.mode = sinter::bag_mode::max;
                  else if (mode != "mean") throw form_not_there{mode};
                  if (in.has("padding_idx None")) o.padding_idx = in.integer("padding_idx", 0);
                  o.include_last_offset = in.flag("include_last_offset", false);
                  o.scale_grad_by_freq = in.flag("scale_grad_by_freq", false);
                  const char* weights = "per_sample_weights None";
                  if (in.has("offsets None")) {
                    const auto ids = in.template constant<std::int64_t, 1>("1"),
                               offsets = in.template constant<std::int64_t, 1>("offsets");
                    if (in.has(weights)) in.give(embedding_bag(ids, offsets, table, in.template x<1>(weights), o));
                    else in.give(embedding_bag(ids, offsets, table, o));
                  } else {
                    const auto ids = in.template constant<std::int64_t, 2>("1");
                    if (in.has(weights)) in.give(embedding_bag(ids, table, in.template x<2>(weights), o));
                    else in.give(embedding_bag(ids, table, o));
                  }
                }),
  };
}

}  // namespace judge
