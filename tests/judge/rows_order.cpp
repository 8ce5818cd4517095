// tests/judge/rows_order.cpp: sorting, and elements picked by indices.
#include "tables.hpp"

namespace judge {

std::vector<row> order_rows() {
  return {
      on<float>("op:sort",
                [](const auto& in) {
                  in.flag("stable", true);  // every sort here is
                  in.give(sort(in.template x<4>("0"), in.axis("1 dim", -1), in.flag("2 descending", false)));
                }),
      on<float>("op:argsort",
                [](const auto& in) {
                  in.flag("stable", true);
                  with_axis(in, "1 dim", -1, [&](const auto& x, index_t axis) {
                    in.give(argsort(x, axis, in.flag("2 descending", false)));
                  });
                }),
      on<float, std::int64_t>("op:topk onnx:TopK",
                              [](const auto& in) {
                                in.only_flag("4 sorted", true);
                                with_axis(in, "2 dim axis", -1, [&](const auto& x, index_t axis) {
                                  in.give(topk(x, in.integer("1", 1), axis, in.flag("3 largest", true)));
                                });
                              }),
      on<float, std::int64_t>("onnx:Unique",
                              [](const auto& in) {
                                in.only_flag("sorted", true);
                                const auto found = unique(in.flat_x("0"));
                                in.give(found.values);
                                in.skip();
                                in.give(found.inverse);
                                in.give(found.counts);
                              }),
      on<float>("op:gather onnx:GatherElements",
                [](const auto& in) {
                  in.give(gather(in.template x<4>("0"), in.axis(in.onnx() ? "axis" : "1 dim", 0),
                                 in.template constant<std::int64_t, 4>(in.onnx() ? "1" : "2 index")));
                }),
      on<float>("op:index_select onnx:Gather",
                [](const auto& in) {
                  const char* index = in.onnx() ? "1" : "2 index";
                  if (in.rank(index) != 1) throw form_not_there{"rank of the index"};
                  in.give(index_select(in.template x<4>("0"), in.axis(in.onnx() ? "axis" : "1 dim", 0),
                                       in.template constant<std::int64_t, 1>(index)));
                }),
      // x[i], x[[i, j]] and x[indices]; a mask has another meaning.
      on<float>("op:__getitem__",
                [](const auto& in) {
                  const auto x = in.template x<4>("0");
                  if (in.is("1", "i")) return in.give(x.select(in.shown_axis(0, 4), in.integer("1", 0)));
                  const shape places = in.integers("1");
                  const auto index = sinter::from_data<std::int64_t>(places, {static_cast<index_t>(places.size())});
                  in.give(index_select(x, in.shown_axis(0, 4), index));
                }),
  };
}

}  // namespace judge
