// tests/nn/summary_test.cpp: the table of a model's modules.
#include "../catch.hpp"

#include <sstream>

#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <device D = cpu, class Kind = nn::tracked>
struct block : nn::module<block<D, Kind>> {
  nn::linear<float, D, Kind> fc, unused;
  nn::buffer<double, 1, D> seen = zeros<double, D>({2});

  template <class X>
  auto forward(const X& x) const {
    return fc(relu(fc(x)));
  }
  SINTER_MEMBERS(fc, unused, seen);
};

}  // namespace

TEST_CASE("a summary tells what every module gives and holds") {
  generator gen(1);
  const nn::linear first(3, 4, gen);
  const nn::sequential model{first, block<>{{}, nn::linear(4, 4, gen), nn::linear(1, 1, gen)}, nn::dropout(0.5, gen),
                             nn::sequential{nn::linear(4, 3, gen), first}};
  const nn::summary_table table = nn::summary(model, {5, 3});
  std::vector<std::string> names, types;
  for (const auto& row : table.rows) names.push_back(row.name), types.push_back(row.type);
  CHECK(names == std::vector<std::string>{"", "0", "1", "1.fc", "1.unused", "2", "3", "3.0", "3.1"});
  CHECK(types == std::vector<std::string>{"sequential", "linear", "block", "linear", "linear", "dropout", "sequential",
                                          "linear", "linear"});
  CHECK(nn::summary(model, extents<2>{{5, 3}}).rows.size() == table.rows.size());
  CHECK(table.rows[1].output == std::vector<index_t>{5, 4});
  CHECK(table.rows[1].multiply_adds == 5 * 4 * 3);
  CHECK(table.rows[1].parameters == 16);
  CHECK(table.rows[1].bytes == 64);
  CHECK(table.rows[1].device == "cpu");
  CHECK(table.rows[2].parameters == 0);
  CHECK(table.rows[2].bytes == 16);
  CHECK(table.rows[3].multiply_adds == 2 * 5 * 4 * 4);
  CHECK_FALSE(table.rows[4].called);
  CHECK(table.rows[8].called);
  CHECK(table.rows[8].parameters == 0);  // tied to module 0
  CHECK(table.parameters == model.parameter_count());
  CHECK(table.multiply_adds == 5 * (3 * 4 + 2 * 4 * 4 + 4 * 3 + 3 * 4));
}

TEST_CASE("a summary leaves the model as it is, and is text") {
  generator gen(2);
  const nn::sequential model{nn::dropout(0.5, gen), nn::linear(2, 3, gen)};
  const auto draws = model.get<0>().source.offset();
  std::ostringstream out;
  out << nn::summary(model, {4, 2});
  CHECK(out.str() ==
        "module   type        output  parameters  multiply-adds  bytes  device\n"
        "(model)  sequential  (4, 3)           0              0      0  cpu\n"
        "0        dropout     (4, 2)           0              0      0\n"
        "1        linear      (4, 3)           9             24     36  cpu\n"
        "total                                 9             24     36\n");
  CHECK(model.get<0>().source.offset() == draws);
  CHECK(model.get<0>().state.training);
  CHECK_THROWS_WITH(nn::summary(model, {4, 5}), Contains("in module 1: "));
  CHECK(nn::summary(nn::any_module<float, 2>(model.get<1>()), {4, 2}).rows[0].type == "linear");
  CHECK(nn::summary<double>(nn::linear<double, numa<0>>(2, 3, gen), {1, 2}).rows[0].device == "numa:0");
}
