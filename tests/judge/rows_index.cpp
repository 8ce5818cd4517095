// tests/judge/rows_index.cpp: elements written at indices.
#include "tables.hpp"

namespace judge {

namespace {

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

}  // namespace

std::vector<row> index_rows() {
  return {
      on<float>("op:scatter",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const auto index = in.template constant<std::int64_t, 4>("2");
                  if (in.is("3", "f") || in.is("3", "i")) in.give(scatter(x, in.axis("1"), index, in.number("3", 0)));
                  else in.give(scatter(x, in.axis("1"), index, in.template x<4>("3")));
                }),
      on<float>("op:scatter_add",
                [](const auto& in) {
                  in.give(scatter_add(in.template x<4>("0"), in.axis("1"), in.template constant<std::int64_t, 4>("2"),
                                      in.template x<4>("3")));
                }),
      on<float>("op:scatter_reduce.sum op:scatter_reduce.prod op:scatter_reduce.mean op:scatter_reduce.amax "
                "op:scatter_reduce.amin",
                [](const auto& in) {
                  by_reduction(in, "4", [&](auto how) {
                    in.give(scatter_reduce(in.template x<4>("0"), in.axis("1"),
                                           in.template constant<std::int64_t, 4>("2"), in.template x<4>("3"), how,
                                           in.flag("include_self", true)));
                  });
                }),
      on<float>("onnx:ScatterElements",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  const auto index = in.template constant<std::int64_t, 4>("1");
                  const auto updates = in.template x<4>("2");
                  const index_t axis = in.axis("axis", 0);
                  if (in.has("reduction"))
                    by_reduction(in, "reduction",
                                 [&](auto how) { in.give(scatter_reduce(x, axis, index, updates, how)); });
                  else in.give(scatter(x, axis, index, updates));
                }),
      on<float>("op:index_copy",
                [](const auto& in) {
                  in.give(index_copy(in.template x<4>("0"), in.axis("1"), in.template constant<std::int64_t, 1>("2"),
                                     in.template x<4>("3")));
                }),
      on<float>("op:index_fill",
                [](const auto& in) {
                  in.give(index_fill(in.template x<4>("0"), in.axis("1"), in.template constant<std::int64_t, 1>("2"),
                                     in.number("3", 0)));
                }),
      on<float>("op:index_add",
                [](const auto& in) {
                  in.give(index_add(in.template x<4>("0"), in.axis("1"), in.template constant<std::int64_t, 1>("2"),
                                    in.template x<4>("3"), in.number("alpha", 1)));
                }),
      on<float>("op:index_reduce",
                [](const auto& in) {
                  by_reduction(in, "4", [&](auto how) {
                    in.give(index_reduce(in.template x<4>("0"), in.axis("1"),
                                         in.template constant<std::int64_t, 1>("2"), in.template x<4>("3"), how,
                                         in.flag("include_self", true)));
                  });
                }),
  };
}

}  // namespace judge
