// tests/judge/rows_loss.cpp: losses.
#include <sinter/sequences.hpp>

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
    in.implied("training");
    const auto x = in.template x<4>("0"), y = in.template x<4>("1");
    by_reduction(in, [&](auto reduction) { return F{}(x, y, in, reduction); });
  });
}
#define LOSS(...) [](const auto& x, const auto& y, [[maybe_unused]] const auto& in, auto reduce) { return __VA_ARGS__; }

/// The options of a loss of classes.
template <class Options, class In>
Options class_options(const In& in) {
  const char* weight = in.has("self.weight") ? "self.weight" : "2 weight None";
  Options options;
  if (in.has(weight)) {
    options.weight = in.template constant<float, 1>(weight);
    in.give_buffer("weight", options.weight);
  }
  options.ignore_index = in.integer("ignore_index", -100);
  if constexpr (requires { options.label_smoothing; }) options.label_smoothing = in.number("label_smoothing", 0);
  return options;
}

/// Logits or log-probabilities (N,C,...) with labels (N,...), or with probabilities where F takes them.
template <class Options, class F>
row classification(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    by_rank<1, 7>(in, "0", [&](auto rank) {
      constexpr int R = decltype(rank)::value;
      const auto x = in.template x<R>("0");
      in.implied("training");
      const bool plain =
          !in.has("ignore_index") && !in.has("self.weight") && !in.has("2 weight None") && !in.has("label_smoothing");
      const auto options = class_options<Options>(in);
      if constexpr (requires { options.label_smoothing; }) {
        if (in.rank("1") == R) {
          const auto targets = in.template x<R>("1");
          return by_reduction(in, [&](auto reduction) { return F{}(x, targets, options, reduction); });
        }
      }
      const auto labels = in.template constant<std::int64_t, R - 1>("1");
      if (plain) by_reduction(in, [&](auto reduction) { return F{}(x, labels, reduction); });
      else by_reduction(in, [&](auto reduction) { return F{}(x, labels, options, reduction); });
      if constexpr (R > 1) {
        if (in.results() == 2) in.give(sinter::log_softmax(x, 1));
      }
    });
  });
}

/// Weights that broadcast to the losses.
template <class In>
sinter::detail::loss_weights<float, 4, sinter::cpu> weights(const In& in, const char* names) {
  if (!in.has(names)) return {};
  return in.template constant<float, 4>(names);
}

}  // namespace

std::vector<row> loss_rows() {
  using labels_options = sinter::cross_entropy_options<float, sinter::cpu>;
  using scores_options = sinter::nll_loss_options<float, sinter::cpu>;
  return {
      classification<labels_options>("op:nn.functional.cross_entropy nn:CrossEntropyLoss onnx:SoftmaxCrossEntropyLoss",
                                     REDUCTION(cross_entropy)),
      classification<scores_options>("op:nn.functional.nll_loss nn:NLLLoss onnx:NegativeLogLikelihoodLoss",
                                     REDUCTION(nll_loss)),
      loss("op:nn.functional.mse_loss", LOSS(mse_loss(x, y, reduce))),
      loss("op:nn.functional.l1_loss nn:L1Loss", LOSS(l1_loss(x, y, reduce))),
      loss("op:nn.functional.smooth_l1_loss", LOSS(smooth_l1_loss(x, y, in.number("beta", 1), reduce))),
      loss("op:nn.functional.huber_loss", LOSS(huber_loss(x, y, in.number("delta", 1), reduce))),
      loss("op:nn.functional.soft_margin_loss", LOSS(soft_margin_loss(x, y, reduce))),
      loss("op:nn.functional.binary_cross_entropy",
           LOSS(in.has("2 weight None")
                    ? eval(binary_cross_entropy(x, y, {.weight = weights(in, "2 weight None")}, reduce))
                    : eval(binary_cross_entropy(x, y, reduce)))),
      loss(
          "op:nn.functional.binary_cross_entropy_with_logits",
          LOSS(in.has("2 weight None") || in.has("6 pos_weight None")
                   ? bce_with_logits(
                         x, y, {.weight = weights(in, "2 weight None"), .pos_weight = weights(in, "6 pos_weight None")},
                         reduce)
                   : eval(bce_with_logits(x, y, reduce)))),
      loss("op:nn.functional.hinge_embedding_loss", LOSS(hinge_embedding_loss(x, y, in.number("margin", 1), reduce))),
      on<float>("op:nn.functional.kl_div",
                [](const auto& in) {
                  const auto of_rank = [&]<int R>(auto with) {
                    const auto x = in.template x<R>("0"), y = in.template x<R>("1");
                    const bool log_target = in.flag("log_target", false);
                    with([&](auto reduce) {
                      return log_target ? eval(kl_div(x, y, sinter::log_target, reduce)) : eval(kl_div(x, y, reduce));
                    });
                  };
                  if (in.text("reduction", "mean") != "batchmean")
                    return of_rank.template operator()<4>([&](auto f) { by_reduction(in, f); });
                  by_rank<1, 4>(in, "0", [&](auto rank) {
                    of_rank.template operator()<decltype(rank)::value>(
                        [&](auto f) { in.give(f(sinter::reduction::batchmean)); });
                  });
                }),
      loss("op:nn.functional.poisson_nll_loss",
           LOSS(poisson_nll_loss(
               x, y,
               sinter::poisson_nll_options{in.flag("log_input", true), in.flag("full", false), in.number("eps", 1e-8)},
               reduce))),
      loss("op:nn.functional.gaussian_nll_loss nn:GaussianNLLLoss", LOSS([&] {
             const sinter::gaussian_nll_options o{in.flag("3 full", false), in.number("4 eps", 1e-6)};
             if (in.rank("2") == in.rank("0")) return gaussian_nll_loss(x, y, in.template x<4>("2"), o, reduce);
             if (in.rank("2") == in.rank("0") - 1) return gaussian_nll_loss(x, y, in.template x<3>("2"), o, reduce);
             throw form_not_there{"rank of the variance"};
           }())),
      loss("op:nn.functional.margin_ranking_loss",
           LOSS(margin_ranking_loss(x, y, in.template x<4>("2"), in.number("3 margin", 0), reduce))),
      on<float>("op:nn.functional.cosine_embedding_loss",
                [](const auto& in) {
                  by_rank<1, 2>(in, "0", [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    const auto x = in.template x<R>("0"), y = in.template x<R>("1");
                    const auto target = in.template x<R - 1>("2");
                    by_reduction(in, [&](auto reduce) {
                      return cosine_embedding_loss(x, y, target, in.number("3 margin", 0), reduce);
                    });
                  });
                }),
      loss("op:nn.functional.triplet_margin_loss",
           LOSS((in.only("4 p", 2),
                 [&] {
                   const sinter::triplet_margin_options o{in.number("3 margin", 1), in.number("5 eps", 1e-6),
                                                          in.flag("6 swap", false)};
                   return triplet_margin_loss(x, y, in.template x<4>("2"), o, reduce);
                 }()))),
      on<float>("op:nn.functional.multi_margin_loss",
                [](const auto& in) {
                  const auto x = in.template x<2>("0");
                  const auto labels = in.template constant<std::int64_t, 1>("1");
                  sinter::multi_margin_options<float, sinter::cpu> o;
                  o.p = static_cast<int>(in.integer("2 p", 1));
                  o.margin = in.number("3 margin", 1);
                  if (in.has("4 weight None")) o.weight = in.template constant<float, 1>("4 weight");
                  by_reduction(in, [&](auto reduce) { return multi_margin_loss(x, labels, o, reduce); });
                }),
      on<float>("op:nn.functional.ctc_loss",
                [](const auto& in) {
                  sinter::ctc_options o;
                  o.blank = in.integer("4 blank", 0);
                  o.zero_infinity = in.flag("6 zero_infinity", false);
                  const shape steps = in.integers("2"), lengths = in.integers("3");
                  const auto of_ranks = [&]<int X, int L>() {
                    const auto x = in.template x<X>("0");
                    const auto labels = in.template constant<std::int64_t, L>("1");
                    by_reduction(in, [&](auto reduce) { return ctc_loss(x, labels, steps, lengths, o, reduce); });
                  };
                  if (in.rank("0") == 2) of_ranks.template operator()<2, 1>();
                  else if (in.rank("1") == 1) of_ranks.template operator()<3, 1>();
                  else of_ranks.template operator()<3, 2>();
                }),
      on<float>("op:nn.functional.multilabel_margin_loss",
                [](const auto& in) {
                  const auto x = in.template x<2>("0");
                  const auto labels = in.template constant<std::int64_t, 2>("1");
                  by_reduction(in, [&](auto reduce) { return multilabel_margin_loss(x, labels, reduce); });
                }),
  };
}

}  // namespace judge
