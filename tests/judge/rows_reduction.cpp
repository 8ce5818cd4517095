// tests/judge/rows_reduction.cpp: reductions, scans and what works along an axis.
#include "tables.hpp"

namespace judge {

namespace {

/// The largest or smallest and where it stands: two ops here.
template <class F, class G>
row extreme(const char* names, F, G) {
  return on<float>(names, [](const auto& in) {
    fold_by(in, "1 dim", "2 keepdim", F{});
    const auto with = [&](const auto& x, index_t axis) {
      if (in.flag("2 keepdim", false)) in.give(G{}(x, axis, sinter::keepdim));
      else in.give(G{}(x, axis));
    };
    if (in.rank("0 input") == 0) with(in.template constant<float, 0>("0 input"), in.integer("1 dim", 0));
    else with(in.template constant<float, 4>("0 input"), in.axis("1 dim"));
  });
}

/// Where the extreme element of one axis stands, or of all.
template <class F>
row fold_one(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const char* dim = "1 dim axis None";
    const sinter::arg_options o{in.flag("select_last_index", false)};
    if (!in.onnx() && !in.has(dim)) {
      in.flag("2 keepdim", false);  // leading 1s do not count
      return in.give(F{}(in.template constant<float, 4>("0 input"), o));
    }
    with_axis(in, dim, 0, [&](const auto& x, index_t axis) {
      if (in.flag("2 keepdim keepdims", in.onnx())) in.give(F{}(x, axis, sinter::keepdim, o));
      else in.give(F{}(x, axis, o));
    });
  });
}

/// f(x, axis), or g(x, mask, axis) where there is a mask.
template <class F, class G>
row masked(const char* names, F, G) {
  return on<float>(names, [](const auto& in) {
    const auto x = in.template x<4>("0 input");
    const index_t axis = in.axis("1 dim");
    if (in.has("2 mask None")) in.give(G{}(x, in.template constant<bool, 4>("2 mask"), axis));
    else in.give(F{}(x, axis));
  });
}

/// A running sum or product, in the ways of ONNX.
template <class... T, class F>
row scan(const char* names, F) {
  return on<T...>(names, [](const auto& in) {
    const sinter::scan_options o = {.exclusive = in.flag("exclusive", false), .reverse = in.flag("reverse", false)};
    const index_t axis = in.onnx() ? in.axis("1", 0) : in.axis("1 dim");
    const auto x = in.template x<4>("0");
    if (o.exclusive || o.reverse) in.give(F{}(x, axis, o));
    else in.give(F{}(x, axis));
  });
}

/// var(x, unbiased), var(x, dim, unbiased, keepdim) or var(x, dim, correction=, keepdim=), as f(x, axes..., options).
template <class F>
row deviation(const char* names, F) {
  return on<float>(names, [](const auto& in) {
    const bool all = in.is("1", "b");
    sinter::var_options o{in.number("correction None", 1)};
    if (!in.flag(all ? "1" : "2 unbiased", true)) o.correction = 0;
    const auto f = [&](const auto& x, const auto&... axes) { return F{}(x, axes..., o); };
    if (all) in.give(f(in.template x<4>("0")));
    else fold_by(in, "1 dim None", "3 keepdim", f);
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
      fold<float>("onnx:ReduceLogSum", [](const auto& x, const auto&... a) { return log(sum(x, a...)); }),
      fold<float>("onnx:ReduceL1", [](const auto& x, const auto&... a) { return sum(abs(x), a...); }),
      fold<float>("onnx:ReduceSumSquare", [](const auto& x, const auto&... a) { return sum(square(x), a...); }),
      fold<float>("op:all", REDUCTION(all)),
      fold<float>("op:any", REDUCTION(any)),
      fold<float>("op:count_nonzero", REDUCTION(count_nonzero)),
      fold<float>("op:nansum", REDUCTION(nansum)),
      fold<float>("op:nanmean", REDUCTION(nanmean)),
      deviation("op:std", REDUCTION(stddev)),
      deviation("op:std_mean", REDUCTION(std_mean)),
      deviation("op:var_mean", REDUCTION(var_mean)),
      fold<float>("op:aminmax", REDUCTION(aminmax)),
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
      extreme("op:max.reduction_with_dim", REDUCTION(max), REDUCTION(argmax)),
      extreme("op:min.reduction_with_dim", REDUCTION(min), REDUCTION(argmin)),
      fold_one("op:argmax onnx:ArgMax", REDUCTION(argmax)),
      fold_one("op:argmin onnx:ArgMin", REDUCTION(argmin)),
      on<float>("op:nn.functional.glu",
                [](const auto& in) {
                  by_rank<1, 6>(in, "0 input", [&](auto rank) {
                    constexpr int R = decltype(rank)::value;
                    in.give(glu(in.template x<R>("0 input"), in.axis("1 dim", -1, R)));
                  });
                }),
      along<float>("op:softmax onnx:Softmax", REDUCTION(softmax)),
      along<float>("op:log_softmax onnx:LogSoftmax", REDUCTION(log_softmax)),
      scan<float, double, std::int32_t>("op:cumsum onnx:CumSum", REDUCTION(cumsum)),
      scan<float, double, std::int32_t>("op:cumprod onnx:CumProd", REDUCTION(cumprod)),
      along<float>("onnx:Hardmax", REDUCTION(hardmax)),
      along<float>("op:nn.functional.softmin", REDUCTION(softmin)),
      masked("op:masked.softmax", REDUCTION(softmax), REDUCTION(masked_softmax)),
      masked("op:masked.log_softmax", REDUCTION(log_softmax), REDUCTION(masked_log_softmax)),
      on<float>("op:sum_to_size",
                [](const auto& in) {
                  shape to = in.integers("1");
                  if (in.is("1", "i"))
                    for (int i = 2; in.has(std::to_string(i).c_str()); ++i)
                      to.push_back(in.integer(std::to_string(i).c_str(), 0));
                  in.give(sum_to_size(in.template x<4>("0"), in.template shown<4>(to).values));
                }),
      along<float>("op:logcumsumexp", REDUCTION(logcumsumexp)),
      along<float>("op:cummax", REDUCTION(cummax)),
      along<float>("op:cummin", REDUCTION(cummin)),
  };
}

}  // namespace judge
