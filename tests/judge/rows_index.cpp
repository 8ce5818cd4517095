// tests/judge/rows_index.cpp: elements written at indices.
#include "tables.hpp"

namespace judge {

namespace {

using i64 = std::int64_t;

/// f(reduction) for the reduction that the case names.
template <class In, class F>
void by_reduction(const In& in, const char* names, const F& f) {
  const std::string how = in.text(names, "none");
  if (how == "sum" || how == "add") f(sinter::reduction::sum);
  else if (how == "prod" || how == "mul") f(sinter::reduction::prod);
  else if (how == "mean") f(sinter::reduction::mean);
  else if (how == "amax" || how == "max") f(sinter::reduction::max);
  else if (how == "amin" || how == "min") f(sinter::reduction::min);
  else throw form_not_there{"reduction " + how};
}

/// PyTorch's (x, axis, index, source, ...), where x has no axes or any number of them: f(x, axis, index, source()).
template <bool Slices, class In, class F>
void write_by(const In& in, const F& f) {
  const auto run = [&](auto rank, index_t axis) {
    constexpr int R = decltype(rank)::value;
    f(in.template x<R>("0"), axis, in.template constant<i64, Slices ? 1 : R>("2"),
      [&] { return in.template x<R>("3"); });
  };
  if (in.rank("0") == 0) run(std::integral_constant<int, 0>(), in.integer("1", 0));
  else run(std::integral_constant<int, 4>(), in.axis("1"));
}

}  // namespace

std::vector<row> index_rows() {
  return {
      on<float>("op:scatter",
                [](const auto& in) {
                  write_by<false>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    if (in.is("3", "f") || in.is("3", "i")) in.give(scatter(x, axis, index, in.number("3", 0)));
                    else in.give(scatter(x, axis, index, source()));
                  });
                }),
      on<float>("op:scatter_add",
                [](const auto& in) {
                  write_by<false>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    in.give(scatter_add(x, axis, index, source()));
                  });
                }),
      on<float>("op:scatter_reduce.sum op:scatter_reduce.prod op:scatter_reduce.mean op:scatter_reduce.amax "
                "op:scatter_reduce.amin",
                [](const auto& in) {
                  write_by<false>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    by_reduction(in, "4", [&](auto how) {
                      in.give(scatter_reduce(x, axis, index, source(), how, in.flag("include_self", true)));
                    });
                  });
                }),
      on<float>("onnx:ScatterElements",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const auto index = in.template constant<i64, 4>("1");
                  const auto updates = in.template x<4>("2");
                  const index_t axis = in.axis("axis", 0);
                  if (in.has("reduction"))
                    by_reduction(in, "reduction",
                                 [&](auto how) { in.give(scatter_reduce(x, axis, index, updates, how)); });
                  else in.give(scatter(x, axis, index, updates));
                }),
      on<float>("op:index_copy",
                [](const auto& in) {
                  write_by<true>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    in.give(index_copy(x, axis, index, source()));
                  });
                }),
      on<float>("op:index_fill",
                [](const auto& in) {
                  write_by<true>(in, [&](const auto& x, index_t axis, const auto& index, const auto&) {
                    in.give(index_fill(x, axis, index, in.number("3", 0)));
                  });
                }),
      on<float>("op:index_add",
                [](const auto& in) {
                  write_by<true>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    in.give(index_add(x, axis, index, source(), in.number("alpha", 1)));
                  });
                }),
      on<float>("op:index_reduce",
                [](const auto& in) {
                  write_by<true>(in, [&](const auto& x, index_t axis, const auto& index, const auto& source) {
                    by_reduction(in, "4", [&](auto how) {
                      in.give(index_reduce(x, axis, index, source(), how, in.flag("include_self", true)));
                    });
                  });
                }),
  };
}

}  // namespace judge
