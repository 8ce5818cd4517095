// tests/judge/rows_unary.cpp: elementwise ops of one tensor.
#include "tables.hpp"

namespace judge {

namespace {

/// Dropout where nothing is left to chance: which elements that takes is not PyTorch's choice.
template <class X>
auto dropped(const X& x, double p, bool training) {
  if (training && p != 0 && p != 1) throw form_not_there{"chance"};
  sinter::generator gen(1);
  sinter::nn::dropout module(p, gen);
  module.train(training);
  return module(x);
}

}  // namespace

std::vector<row> unary_rows() {
  return {
      unary<float>("op:acos onnx:Acos", OF_X(acos(x))),
      unary<float>("onnx:Asin", OF_X(asin(x))),
      unary<float>("op:acosh onnx:Acosh", OF_X(acosh(x))),
      unary<float>("onnx:Asinh", OF_X(asinh(x))),
      unary<float>("onnx:Atanh", OF_X(atanh(x))),
      unary<float>("op:cos onnx:Cos", OF_X(cos(x))),
      unary<float>("onnx:Sin", OF_X(sin(x))),
      unary<float>("op:tan onnx:Tan", OF_X(tan(x))),
      unary<float>("op:sinh onnx:Sinh", OF_X(sinh(x))),
      unary<float>("op:erfc", OF_X(erfc(x))),
      unary<float>("onnx:Exp", OF_X(exp(x))),
      unary<float>("op:expm1", OF_X(expm1(x))),
      unary<float>("op:log onnx:Log", OF_X(log(x))),
      unary<float>("op:log2", OF_X(log2(x))),
      unary<float>("op:log10", OF_X(log10(x))),
      unary<float>("op:sqrt onnx:Sqrt", OF_X(sqrt(x))),
      unary<float>("op:rsqrt", OF_X(rsqrt(x))),
      unary<float>("op:reciprocal onnx:Reciprocal", OF_X(reciprocal(x))),
      unary<float>("onnx:Neg", OF_X(-x)),
      unary<float>("onnx:Sign", OF_X(sign(x))),
      unary<float>("onnx:Floor", OF_X(floor(x))),
      unary<float>("op:trunc", OF_X(trunc(x))),
      unary<float>("op:frac", OF_X(frac(x))),
      unary<float>("op:round.decimals_0", OF_X((in.only("decimals", 0), round(x)))),
      unary<float>("op:round.decimals_3 op:round.decimals_neg_3", OF_X(round(x, in.integer("decimals", 0)))),
      unary<float>("onnx:IsInf", OF_X([&] {
                     const bool below = in.flag("detect_negative", true), above = in.flag("detect_positive", true);
                     if (below != above) return below ? eval(isneginf(x)) : eval(isposinf(x));
                     return eval(isinf(x));
                   }())),
      unary<float>("op:isposinf", OF_X(isposinf(x))),
      unary<float>("op:isneginf", OF_X(isneginf(x))),
      unary<float>("op:sinc", OF_X(sinc(x))),
      unary<float>("op:deg2rad", OF_X(deg2rad(x))),
      unary<float>("op:positive", OF_X(positive(x))),
      unary<float>("op:nn.functional.mish onnx:Mish", OF_X(mish(x))),
      unary<float>("op:logit", OF_X(logit(x))),
      unary<float>("op:sigmoid onnx:Sigmoid", OF_X(sigmoid(x))),
      unary<float>("nn:Sigmoid", OF_X((in.implied("training"), sinter::nn::sigmoid()(x)))),
      unary<float>("op:nn.functional.relu onnx:Relu", OF_X(relu(x))),
      unary<float>("nn:ReLU", OF_X((in.implied("training"), sinter::nn::relu()(x)))),
      unary<float>("op:nn.functional.relu6", OF_X(relu6(x))),
      unary<float>("op:nn.functional.leaky_relu onnx:LeakyRelu",
                   OF_X(leaky_relu(x, in.number("1 alpha negative_slope", 0.01)))),
      unary<float>("op:nn.functional.elu onnx:Elu", OF_X(elu(x, in.number("1 alpha", 1)))),
      unary<float>("nn:ELU", OF_X((in.implied("training"), sinter::nn::elu(in.number("c0 alpha", 1))(x)))),
      unary<float>("op:nn.functional.celu onnx:Celu", OF_X(celu(x, in.number("1 alpha", 1)))),
      unary<float>("op:nn.functional.selu", OF_X(selu(x))),
      unary<float>("onnx:Selu",
                   OF_X(selu(x, in.number("alpha", 1.6732632423543772), in.number("gamma", 1.0507009873554805)))),
      unary<float>("op:nn.functional.silu", OF_X(silu(x))),
      unary<float>("onnx:Swish", OF_X((in.only("alpha", 1), silu(x)))),
      unary<float>("op:nn.functional.gelu onnx:Gelu", OF_X((in.only_text("approximate", "none"), gelu(x)))),
      unary<float>("op:nn.functional.gelu onnx:Gelu", OF_X((in.only_text("approximate", "tanh"), gelu_tanh(x)))),
      unary<float>("op:nn.functional.hardswish onnx:HardSwish", OF_X(hardswish(x))),
      unary<float>("nn:Hardswish", OF_X((in.implied("training"), hardswish(x)))),
      unary<float>("onnx:HardSigmoid", OF_X(hardsigmoid(x, in.number("alpha", 0.2), in.number("beta", 0.5)))),
      unary<float>("onnx:Shrink", OF_X(shrink(x, in.number("lambd", 0.5), in.number("bias", 0)))),
      unary<float>("op:nn.functional.hardtanh",
                   OF_X(hardtanh(x, in.number("1 min_val", -1), in.number("2 max_val", 1)))),
      unary<float>("op:nn.functional.hardshrink", OF_X(hardshrink(x, in.number("1 lambd", 0.5)))),
      unary<float>("op:nn.functional.softshrink", OF_X(softshrink(x, in.number("1 lambd", 0.5)))),
      unary<float>("op:nn.functional.threshold",
                   OF_X(threshold(x, in.number("1 threshold", 0), in.number("2 value", 0)))),
      unary<float>("onnx:ThresholdedRelu", OF_X(threshold(x, in.number("alpha", 1), 0))),
      unary<float>("op:nn.functional.softplus onnx:Softplus",
                   OF_X(softplus(x, in.number("1 beta", 1), in.number("2 threshold", 20)))),
      unary<float>("op:nn.functional.softsign onnx:Softsign", OF_X(softsign(x))),
      unary<float>("op:nn.functional.logsigmoid", OF_X(log_sigmoid(x))),
      unary<float>("op:clone", OF_X(x)),
      on<float, double>("onnx:Cast",
                        [](const auto& in) {
                          const auto x = in.flat_x("0");
                          if (in.integer("to", 0) == 1) in.give_like("0", sinter::cast<float>(x));
                          else if (in.integer("to", 0) == 11) in.give_like("0", sinter::cast<double>(x));
                          else throw form_not_there{"to"};
                        }),
      unary<float>("op:nn.functional.dropout", OF_X(dropped(x, in.number("1 p", 0.5), in.flag("2 training", true)))),
      unary<float>("nn:Dropout", OF_X(dropped(x, in.number("c0 p", 0.5), in.flag("training", true)))),
      unary<float>("onnx:Dropout",
                   OF_X((in.implied("seed"), dropped(x, in.number("1 ratio", 0.5), in.flag("2", false))))),
      unary<bool>("onnx:Not", OF_X(!x)),
      on<float>("op:nn.functional.prelu",
                [](const auto& in) {
                  by_rank<0, 4>(in, "0", [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    if (in.rank("1 weight") == 0) in.give(prelu(x, in.template x<0>("1 weight")));
                    else in.give(prelu(x, in.template x<1>("1 weight")));
                  });
                }),
  };
}

}  // namespace judge
