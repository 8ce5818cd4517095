// tests/judge/rows_norm.cpp: norms of channels.
#include "tables.hpp"

namespace judge {

namespace {

/// f of the rank of the first argument, from Least to 5, as a type.
template <int Least = 2, class In, class F>
void with_rank(const In& in, F f) {
  const int rank = in.rank("0 input");
  if (rank == Least) f(std::integral_constant<int, Least>());
  else if constexpr (Least < 5) with_rank<Least + 1>(in, f);
  else throw form_not_there{"rank " + std::to_string(rank)};
}

/// f(weight, bias), f(weight) or f(), as the case has them.
template <class In, class F>
void with_affine(const In& in, const char* weight, const char* bias, F f) {
  if (in.find(weight) && in.find(bias)) f(in.template x<1>(weight), in.template x<1>(bias));
  else if (in.find(weight)) f(in.template x<1>(weight));
  else f();
}

}  // namespace

std::vector<row> norm_rows() {
  return {
      on<float>("op:nn.functional.batch_norm onnx:BatchNormalization nn:BatchNorm2d nn:BatchNorm3d",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    const bool onnx = in.onnx();
                    const bool module = in.find("running_mean") != nullptr;
                    in.integers("c0");
                    sinter::batch_norm_options o;
                    o.training = in.flag("training training_mode", false);
                    o.momentum = onnx ? 1 - in.number("momentum", 0.9) : in.number("momentum", 0.1);
                    o.eps = in.number("eps epsilon", 1e-5);
                    const char* mean = onnx ? "3" : module ? "running_mean" : "1";
                    const char* variance = onnx ? "4" : module ? "running_var" : "2";
                    const char* weight = onnx ? "1" : module ? "weight" : "3";
                    const char* bias = onnx ? "2" : module ? "bias" : "4";
                    const auto moments = [&](const char* name) {
                      return in.find(name) ? in.template constant<float, 1>(name).clone() : sinter::tensor<float, 1>();
                    };
                    const auto running_mean = moments(mean), running_var = moments(variance);
                    const auto x = in.template x<R>("0 input");
                    with_affine(in, weight, bias, [&](const auto&... w) {
                      in.give(sinter::batch_norm(x, running_mean, running_var, w..., o));
                      // ONNX's running variance is that of the batch as it is, not the unbiased one.
                      if (onnx && o.training) in.give(running_mean);
                      if (onnx && o.training) in.skip();
                    });
                  });
                }),
      on<float>("op:nn.functional.group_norm onnx:GroupNormalization",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    const double eps = in.number("eps epsilon", 1e-5);
                    if (eps < 0) throw form_not_there{"a negative eps"};
                    in.only("stash_type", 1);
                    const index_t groups = in.integer(in.onnx() ? "num_groups" : "1", 1);
                    const auto x = in.template x<R>("0 input");
                    with_affine(in, in.onnx() ? "1" : "weight 2", in.onnx() ? "2" : "bias 3",
                                [&](const auto&... w) { in.give(sinter::group_norm(x, groups, w..., eps)); });
                  });
                }),
      on<float>("op:nn.functional.instance_norm onnx:InstanceNormalization",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    if (!in.flag("use_input_stats", true)) throw form_not_there{"running moments"};
                    in.number("momentum", 0.1);
                    in.find("running_mean");
                    in.find("running_var");
                    const double eps = in.number("eps epsilon", 1e-5);
                    const auto x = in.template x<R>("0 input");
                    with_affine(in, in.onnx() ? "1" : "weight", in.onnx() ? "2" : "bias",
                                [&](const auto&... w) { in.give(sinter::instance_norm(x, w..., eps)); });
                  });
                }),
  };
}

}  // namespace judge
