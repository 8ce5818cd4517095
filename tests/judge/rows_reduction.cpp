// tests/judge/rows_reduction.cpp: reductions, scans and what works along an axis.
#include "tables.hpp"

namespace judge {

namespace {

/// The largest or smallest and where it stands: two ops here.
template <class F, class G>
row extreme(const char* names, F, G) {
  return on<float>(names, [](const auto& in) {
    fold_by(in, "1 dim", "2 keepdim", F{});
    const auto x = in.template constant<float, 4>("0");
    const index_t axis = in.axis("1 dim");
    if (in.flag("2 keepdim", false)) in.give(G{}(x, axis, sinter::keepdim));
    else in.give(G{}(x, axis));
  });
}

/// A reduction of one axis, or of all.
template <class F>
row fold_one(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const auto x = in.template constant<float, 4>("0");
    const char* dim = "1 dim axis None";
    if (!in.onnx() && !in.has(dim)) {
      in.flag("2 keepdim", false);  // leading 1s do not count
      return in.give(F{}(x));
    }
    const index_t axis = in.axis(dim, 0);
    if (in.flag("2 keepdim keepdims", in.onnx())) in.give(F{}(x, axis, sinter::keepdim));
    else in.give(F{}(x, axis));
  });
}

/// var(x, unbiased), var(x, dim, unbiased, keepdim), var(x, dim, correction=, keepdim=); the library has n - 1.
template <class F>
row deviation(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    in.only("correction None", 1);
    if (in.is("1", "b")) {
      in.only_flag("1", true);
      in.give(F{}(in.template x<4>("0")));
    } else {
      in.only_flag("2 unbiased", true);
      fold_by(in, "1 dim None", "3 keepdim", F{});
    }
  });
}

/// Norms of order 2 of all elements of an axis or two, whose order has the name or number given.
template <class In>
void norm_by(const In& in, const char* order, const char* axes, const char* keep) {
  if (in.is(order, "s")) in.only_text(order, "fro");
  else in.only(order, 2);
  fold_by(in, axes, keep, REDUCTION(norm));
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
      fold<float>("op:count_nonzero", REDUCTION(count_nonzero)),
      fold<float>("op:nansum", REDUCTION(nansum)),
      fold<float>("op:nanmean", REDUCTION(nanmean)),
      deviation("op:std", REDUCTION(stddev)),
      // What PyTorch puts before and behind is joined here.
      on<float>("op:diff",
                [](const auto& in) {
                  const index_t n = in.integer("1 n", 1), axis = in.axis("2 dim", -1);
                  const auto x = in.template x<4>("0");
                  std::vector<std::remove_const_t<decltype(x)>> parts;
                  if (in.has("3 prepend None")) parts.push_back(in.template x<4>("3 prepend"));
                  parts.push_back(x);
                  if (in.has("4 append None")) parts.push_back(in.template x<4>("4 append"));
                  in.give(n == 0 ? x : sinter::diff(sinter::concat(axis, parts), n, axis));
                }),
      deviation("op:var", REDUCTION(var)),
      on<float>("op:norm op:norm.inf", [](const auto& in) { norm_by(in, "1 p None", "2 dim None", "3 keepdim"); }),
      // A matrix has another norm of order 2 here, unless no order is given.
      on<float>("op:linalg.norm",
                [](const auto& in) {
                  const bool matrix = in.has("2 dim None") ? in.integers("2 dim").size() == 2 : in.rank("0") == 2;
                  if (matrix && in.has("1 ord None") && !in.is("1 ord", "s")) throw form_not_there{"order of a matrix"};
                  norm_by(in, "1 ord None", "2 dim None", "3 keepdim");
                }),
      on<float>("op:linalg.vector_norm", [](const auto& in) { norm_by(in, "1 ord", "2 dim None", "3 keepdim"); }),
      extreme("op:max.reduction_with_dim", REDUCTION(max), REDUCTION(argmax)),
      extreme("op:min.reduction_with_dim", REDUCTION(min), REDUCTION(argmin)),
      fold_one("op:argmax onnx:ArgMax", REDUCTION(argmax)),
      fold_one("op:argmin onnx:ArgMin", REDUCTION(argmin)),
      on<float>("op:nn.functional.glu",
                [](const auto& in) { in.give(glu(in.template x<4>("0 input"), in.axis("1 dim", -1))); }),
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
