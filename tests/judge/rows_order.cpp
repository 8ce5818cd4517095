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
      on<float>("op:gather",
                [](const auto& in) {
                  in.give(gather(in.template x<4>("0"), in.axis("1 dim", 0),
                                 in.template constant<std::int64_t, 4>("2 index")));
                }),
      on<float>("op:index_select onnx:Gather",
                [](const auto& in) {
                  const char* index = in.onnx() ? "1" : "2 index";
                  if (in.rank(index) != 1) throw form_not_there{"rank of the index"};
                  if (in.onnx() && in.integer("axis", 0) == 0)  // the indices may count from the end
                    return by_rank(in, "0", [&](auto rank) {
                      in.give(index_get(in.template x<decltype(rank)::value>("0"),
                                        {in.template constant<std::int64_t, 1>(index)}));
                    });
                  in.give(index_select(in.template x<4>("0"), in.axis(in.onnx() ? "axis" : "1 dim", 0),
                                       in.template constant<std::int64_t, 1>(index)));
                }),
  };
}

}  // namespace judge
