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
  const bool weighs = in.has(weight), shifts = in.has(bias);
  if (weighs && shifts) f(in.template x<1>(weight), in.template x<1>(bias));
  else if (weighs) f(in.template x<1>(weight));
  else f();
}

/// A copy of running moments, as a batch norm moves them; undefined where the case has none.
template <class In>
sinter::tensor<float, 1> moments(const In& in, const char* name) {
  return in.has(name) ? in.template constant<float, 1>(name).clone() : sinter::tensor<float, 1>();
}

/// A module with weight, bias and running moments, as PyTorch's is by default.
template <class Module, int R>
row batch_norm_module(const char* names) {
  return on<float>(names, [](const auto& in) {
    in.only_flag("c3 affine", true);
    in.only_flag("c4 track_running_stats", true);
    sinter::nn::batch_norm_settings how;
    how.eps = in.number("c1 eps", 1e-5);
    const char* momentum = "c2 momentum None";
    if (in.has(momentum)) how.momentum = in.number(momentum, 0.1);
    else if (in.is_none(momentum)) how.momentum = std::nullopt;
    Module module(in.integer("c0 num_features", 0), how);
    module.train(in.flag("training", true));
    module.weight = in.template x<1>("self.weight");
    module.bias = in.template x<1>("self.bias");
    module.running_mean = moments(in, "self.running_mean");
    module.running_var = moments(in, "self.running_var");
    module.num_batches_tracked = in.template constant<std::int64_t, 0>("self.num_batches_tracked").clone();
    in.give(module(in.template x<R>("0 input")));
    in.give_buffer("running_mean", module.running_mean.value());
    in.give_buffer("running_var", module.running_var.value());
    in.give_buffer("num_batches_tracked", module.num_batches_tracked.value());
  });
}

}  // namespace

std::vector<row> norm_rows() {
  return {
      on<float>("op:nn.functional.batch_norm",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0 input");
                    const auto mean = moments(in, "1 running_mean None"), variance = moments(in, "2 running_var None");
                    sinter::batch_norm_options o;
                    o.training = in.flag("5 training", false);
                    o.momentum = in.number("6 momentum", 0.1);
                    o.eps = in.number("7 eps", 1e-5);
                    with_affine(in, "3 weight None", "4 bias None",
                                [&](const auto&... w) { in.give(sinter::batch_norm(x, mean, variance, w..., o)); });
                  });
                }),
      on<float>("op:native_batch_norm",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    const auto mean = moments(in, "3 None"), variance = moments(in, "4 None");
                    sinter::batch_norm_options o;
                    in.only_flag("5", false);
                    o.momentum = in.number("6", 0.1);
                    o.eps = in.number("7", 1e-5);
                    with_affine(in, "1 None", "2 None",
                                [&](const auto&... w) { in.give(sinter::batch_norm(x, mean, variance, w..., o)); });
                    in.skip();  // what it keeps for backward
                    in.skip();
                  });
                }),
      batch_norm_module<sinter::nn::batch_norm2d<>, 4>("nn:BatchNorm2d"),
      batch_norm_module<sinter::nn::batch_norm3d<>, 5>("nn:BatchNorm3d"),
      on<float>("onnx:BatchNormalization",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    const auto x = in.template x<decltype(rank)::value>("0");
                    const auto mean = moments(in, "3"), variance = moments(in, "4");
                    sinter::batch_norm_options o;
                    o.training = in.flag("training_mode", false);
                    o.momentum = 1 - in.number("momentum", 0.9);
                    o.eps = in.number("epsilon", 1e-5);
                    with_affine(in, "1", "2",
                                [&](const auto&... w) { in.give(sinter::batch_norm(x, mean, variance, w..., o)); });
                    if (!o.training) return;
                    in.give(mean);
                    in.skip();  // ONNX's running variance is that of the batch as it is, not the unbiased one
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
                    with_affine(in, in.onnx() ? "1" : "2 weight None", in.onnx() ? "2" : "3 bias None",
                                [&](const auto&... w) { in.give(sinter::group_norm(x, groups, w..., eps)); });
                  });
                }),
      on<float>("op:nn.functional.instance_norm onnx:InstanceNormalization",
                [](const auto& in) {
                  with_rank(in, [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    const double eps = in.number("7 eps epsilon", 1e-5);
                    const auto x = in.template x<R>("0 input");
                    if (!in.onnx() && (in.has("1 running_mean None") || in.has("2 running_var None"))) {
                      const auto mean = moments(in, "1 running_mean"), variance = moments(in, "2 running_var");
                      const sinter::instance_norm_options o{in.flag("5 use_input_stats", true),
                                                            in.number("6 momentum", 0.1), eps};
                      return with_affine(in, "3 weight None", "4 bias None", [&](const auto&... w) {
                        in.give(sinter::instance_norm(x, mean, variance, w..., o));
                      });
                    }
                    if (!in.onnx()) {
                      in.only_flag("5 use_input_stats", true);
                      in.number("6 momentum", 0.1);
                    }
                    with_affine(in, in.onnx() ? "1" : "3 weight None", in.onnx() ? "2" : "4 bias None",
                                [&](const auto&... w) { in.give(sinter::instance_norm(x, w..., eps)); });
                  });
                }),
  };
}

}  // namespace judge
