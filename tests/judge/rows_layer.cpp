// tests/judge/rows_layer.cpp: matrix products, layers and losses.
#include "tables.hpp"

namespace judge {

namespace {

/// Calls f with the reduction that the case asks for.
template <class In, class F>
void by_reduction(const In& in, F f) {
  const std::string reduction = in.text("reduction", "mean");
  if (reduction == "mean") in.give(f(sinter::reduction::mean));
  else if (reduction == "sum") in.give(f(sinter::reduction::sum));
  else in.give(f(sinter::reduction::none));
}

/// Logits or log-probabilities (N,C,...) with labels (N,...), or with probabilities where F takes them.
template <bool Options, class F>
row classification(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto x = in.template x<R>("0");
      if constexpr (Options) {
        sinter::cross_entropy_options<float, sinter::cpu> options;
        if (in.find("weight 2")) options.weight = in.template constant<float, 1>("weight 2");
        options.ignore_index = in.integer("ignore_index", -100);
        options.label_smoothing = in.number("label_smoothing", 0);
        if (in.rank("1") == R) {
          const auto targets = in.template x<R>("1");
          return by_reduction(in, [&](auto reduction) { return F{}(x, targets, options, reduction); });
        }
        const auto labels = in.template constant<std::int64_t, R - 1>("1");
        if (in.find("weight 2") || in.find("ignore_index") || options.label_smoothing != 0)
          return by_reduction(in, [&](auto reduction) { return F{}(x, labels, options, reduction); });
        return by_reduction(in, [&](auto reduction) { return F{}(x, labels, reduction); });
      } else {
        const auto labels = in.template constant<std::int64_t, R - 1>("1");
        by_reduction(in, [&](auto reduction) { return F{}(x, labels, reduction); });
      }
    });
  });
}

/// f of the number of axes that a norm of rows takes, from 1 to 4, as a type.
template <int Least = 1, class F>
void by_axes(index_t axes, F f) {
  if (axes == Least) f(std::integral_constant<int, Least>());
  else if constexpr (Least < 4) by_axes<Least + 1>(axes, f);
  else throw form_not_there{std::to_string(axes) + " axes"};
}

/// Norms of the last axes, scaled by weights and shifted by biases where F takes one.
template <bool Bias, class F>
row norm_of_rows(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const shape rows = in.integers(in.onnx() ? "" : "1");
    const index_t axes = in.onnx() ? 4 - (in.axis("axis", -1) + 4) % 4 : static_cast<index_t>(rows.size());
    const char* weight = in.onnx() ? "1" : "2 weight";
    const char* bias = in.onnx() ? "2" : "3 bias";
    const double e = in.number(in.onnx() ? "epsilon" : "4 eps", 1e-5);
    if (e < 0) throw form_not_there{"a negative eps"};
    by_axes(axes, [&](auto count) {
      constexpr int K = decltype(count)::value;
      const auto x = in.template x<4>("0");
      if (!in.find(weight)) {
        const auto y = F{}(x, in.template shown<K>(rows), e);
        if (in.find(bias)) in.give(y + in.template x<K>(bias));
        else in.give(y);
      } else {
        const auto w = in.template x<K>(weight);
        if constexpr (Bias) {
          if (in.find(bias)) return in.give(F{}(x, w, in.template x<K>(bias), e));
        }
        in.give(F{}(x, w, e));
      }
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
                  if (in.find("2")) in.give(product + static_cast<float>(in.number("beta", 1)) * in.template x<2>("2"));
                  else in.give(product);
                }),
      on<float>("op:mv", [](const auto& in) { in.give(mv(in.template x<2>("0"), in.template x<1>("1"))); }),
      on<float>("op:dot op:inner", [](const auto& in) { in.give(dot(in.template x<1>("0"), in.template x<1>("1"))); }),
      on<float>("op:nn.functional.linear",
                [](const auto& in) {
                  by_rank(in, "0", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    if (in.find("2 bias")) in.give(linear(x, in.template x<2>("1"), in.template x<1>("2 bias")));
                    else in.give(linear(x, in.template x<2>("1")));
                  });
                }),
      on<float>("nn:Linear",
                [](const auto& in) {
                  sinter::generator gen(1);
                  const index_t inputs = in.integer("c0", 0), outputs = in.integer("c1", 0);
                  by_rank(in, "0 input", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0 input");
                    const argument* bias = in.find("bias");
                    if (bias && bias->kind == "T") {
                      sinter::nn::linear fc(inputs, outputs, gen);
                      fc.weight = in.template x<2>("weight");
                      fc.bias = in.template x<1>("bias");
                      in.give(fc(x));
                    } else {
                      sinter::nn::linear fc(inputs, outputs, gen, sinter::nn::no_bias);
                      fc.weight = in.template x<2>("weight");
                      in.give(fc(x));
                    }
                  });
                }),
      norm_of_rows<true>("op:nn.functional.layer_norm op:native_layer_norm onnx:LayerNormalization",
                         [](const auto&... a) { return sinter::layer_norm(a...); }),
      norm_of_rows<false>("onnx:RMSNormalization", [](const auto&... a) { return sinter::rms_norm(a...); }),
      classification<true>("op:nn.functional.cross_entropy nn:CrossEntropyLoss onnx:SoftmaxCrossEntropyLoss",
                           REDUCTION(cross_entropy)),
      classification<false>("op:nn.functional.nll_loss nn:NLLLoss onnx:NegativeLogLikelihoodLoss", REDUCTION(nll_loss)),
      on<float>("op:nn.functional.mse_loss",
                [](const auto& in) {
                  const auto x = in.template x<4>("0"), y = in.template x<4>("1");
                  by_reduction(in, [&](auto reduction) { return mse_loss(x, y, reduction); });
                }),
      on<float>("op:nn.functional.binary_cross_entropy_with_logits",
                [](const auto& in) {
                  const auto x = in.template x<4>("0"), y = in.template x<4>("1");
                  by_reduction(in, [&](auto reduction) { return bce_with_logits(x, y, reduction); });
                }),
  };
}

}  // namespace judge
