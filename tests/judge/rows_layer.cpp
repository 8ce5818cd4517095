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
  else if (reduction == "none") in.give(f(sinter::reduction::none));
  else throw form_not_there{reduction};
}

/// A loss of a prediction and a target of its shape.
template <class F>
row loss(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const auto x = in.template x<4>("0"), y = in.template x<4>("1");
    by_reduction(in, [&](auto reduction) { return F{}(x, y, in, reduction); });
  });
}
#define LOSS(...) [](const auto& x, const auto& y, [[maybe_unused]] const auto& in, auto reduce) { return __VA_ARGS__; }

/// Logits or log-probabilities (N,C,...) with labels (N,...), or with probabilities where F takes them.
template <bool Options, class F>
row classification(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto x = in.template x<R>("0");
      in.implied("training");
      if constexpr (Options) {
        const char* weight = in.has("self.weight") ? "self.weight" : "2 weight None";
        sinter::cross_entropy_options<float, sinter::cpu> options;
        const bool weighted = in.has(weight), ignores = in.has("ignore_index");
        if (weighted) options.weight = in.template constant<float, 1>(weight);
        if (weighted) in.give_buffer("weight", options.weight);
        options.ignore_index = in.integer("ignore_index", -100);
        options.label_smoothing = in.number("label_smoothing", 0);
        if (in.rank("1") == R) {
          const auto targets = in.template x<R>("1");
          return by_reduction(in, [&](auto reduction) { return F{}(x, targets, options, reduction); });
        }
        const auto labels = in.template constant<std::int64_t, R - 1>("1");
        if (weighted || ignores || options.label_smoothing != 0)
          by_reduction(in, [&](auto reduction) { return F{}(x, labels, options, reduction); });
        else by_reduction(in, [&](auto reduction) { return F{}(x, labels, reduction); });
        if constexpr (R > 1) {
          if (in.results() == 2) in.give(sinter::log_softmax(x, 1));
        }
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
      norm_of_rows<true>("op:nn.functional.layer_norm op:native_layer_norm onnx:LayerNormalization",
                         [](const auto&... a) { return sinter::layer_norm(a...); }),
      norm_of_rows<false>("onnx:RMSNormalization", [](const auto&... a) { return sinter::rms_norm(a...); }),
      classification<true>("op:nn.functional.cross_entropy nn:CrossEntropyLoss onnx:SoftmaxCrossEntropyLoss",
                           REDUCTION(cross_entropy)),
      classification<false>("op:nn.functional.nll_loss nn:NLLLoss onnx:NegativeLogLikelihoodLoss", REDUCTION(nll_loss)),
      loss("op:nn.functional.mse_loss", LOSS(mse_loss(x, y, reduce))),
      loss("op:nn.functional.l1_loss", LOSS(l1_loss(x, y, reduce))),
      loss("op:nn.functional.smooth_l1_loss", LOSS(smooth_l1_loss(x, y, in.number("beta", 1), reduce))),
      loss("op:nn.functional.huber_loss", LOSS(huber_loss(x, y, in.number("delta", 1), reduce))),
      loss("op:nn.functional.soft_margin_loss", LOSS(soft_margin_loss(x, y, reduce))),
      loss("op:nn.functional.binary_cross_entropy", LOSS(binary_cross_entropy(x, y, reduce))),
      loss("op:nn.functional.hinge_embedding_loss", LOSS(hinge_embedding_loss(x, y, in.number("margin", 1), reduce))),
      loss("op:nn.functional.kl_div", LOSS(in.flag("log_target", false) ? eval(kl_div(x, y, sinter::log_target, reduce))
                                                                        : eval(kl_div(x, y, reduce)))),
      loss("op:nn.functional.poisson_nll_loss",
           LOSS(poisson_nll_loss(
               x, y,
               sinter::poisson_nll_options{in.flag("log_input", true), in.flag("full", false), in.number("eps", 1e-8)},
               reduce))),
      loss("op:nn.functional.binary_cross_entropy_with_logits", LOSS(bce_with_logits(x, y, reduce))),
  };
}

}  // namespace judge
