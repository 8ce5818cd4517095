// tests/judge/rows_reduction.cpp: reductions, scans and what works along an axis.
#include "tables.hpp"

namespace judge {

namespace {

/// The largest or smallest and where it stands: two ops here.
template <class F, class G>
row extreme(const char* names, F, G) {
  return on<float>(names, [](const auto& in) {
    fold_by<float, 1>(in, F{});
    const auto x = in.template constant<float, 4>("0");
    const index_t axis = in.axis("1 dim", 0);
    if (in.flag("2 keepdim", false)) in.give(G{}(x, axis, sinter::keepdim));
    else in.give(G{}(x, axis));
  });
}

/// A reduction of one axis, or of all.
template <class F>
row fold_one(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const auto x = in.template constant<float, 4>("0");
    if (!in.onnx() && !in.find("1 dim")) return in.give(F{}(x));
    const index_t axis = in.axis("1 dim axis", 0);
    if (in.flag("2 keepdim keepdims", in.onnx())) in.give(F{}(x, axis, sinter::keepdim));
    else in.give(F{}(x, axis));
  });
}

}  // namespace

std::vector<row> reduction_rows() {
  return {
      fold<float>("op:sum onnx:ReduceSum", REDUCTION(sum)),
      fold<float>("op:mean onnx:ReduceMean", REDUCTION(mean)),
      fold<float>("op:prod onnx:ReduceProd", REDUCTION(prod)),
      fold<float, bool>("op:amax op:max.reduction_no_dim onnx:ReduceMax", REDUCTION(max)),
      fold<float, bool>("op:amin onnx:ReduceMin", REDUCTION(min)),
      fold<float, double>("op:logsumexp onnx:ReduceLogSumExp", REDUCTION(logsumexp)),
      fold<float>("onnx:ReduceL2", REDUCTION(norm)),
      fold<float>("onnx:ReduceL1", [](const auto& x, const auto&... a) { return sum(abs(x), a...); }),
      fold<float>("onnx:ReduceSumSquare", [](const auto& x, const auto&... a) { return sum(square(x), a...); }),
      fold<float>("op:all", REDUCTION(all)),
      fold<float>("op:any", REDUCTION(any)),
      on<float>("op:var",
                [](const auto& in) {
                  in.only("unbiased", 1);
                  in.only("correction", 1);
                  fold_by<float, 1>(in, REDUCTION(var));
                }),
      on<float>("op:norm op:linalg.norm op:linalg.vector_norm op:norm.inf",
                [](const auto& in) {
                  if (in.text("1 ord", "2") != "fro") in.only("1 ord", 2);
                  fold_by<float, 2>(in, REDUCTION(norm));
                }),
      extreme("op:max.reduction_with_dim", REDUCTION(max), REDUCTION(argmax)),
      extreme("op:min.reduction_with_dim", REDUCTION(min), REDUCTION(argmin)),
      fold_one("op:argmax onnx:ArgMax", REDUCTION(argmax)),
      fold_one("op:argmin onnx:ArgMin", REDUCTION(argmin)),
      along<float>("op:softmax onnx:Softmax", REDUCTION(softmax)),
      along<float>("op:log_softmax onnx:LogSoftmax", REDUCTION(log_softmax)),
      along<float, double, std::int32_t>("op:cumsum onnx:CumSum", REDUCTION(cumsum)),
      along<float, double, std::int32_t>("op:cumprod onnx:CumProd", REDUCTION(cumprod)),
      along<float>("op:logcumsumexp", REDUCTION(logcumsumexp)),
      along<float>("op:cummax", REDUCTION(cummax)),
      along<float>("op:cummin", REDUCTION(cummin)),
  };
}

}  // namespace judge
