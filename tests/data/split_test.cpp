// tests/data/split_test.cpp: parts of datasets, several as one, sequences of several lengths, and normalised features.
#include "../catch.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>
#include <set>
#include <sstream>

#include <sinter/data.hpp>
#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

#include "../io/folder.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

/// Sample i is i.
auto numbers(index_t n) { return tensor_dataset(eval(arange<std::int64_t>(n)), zeros<std::int32_t>({n})); }
template <class Set>
std::vector<std::int64_t> inputs_of(const Set& set) {
  std::vector<std::int64_t> all;
  data_loader loader(set, {.batch_size = 4, .prefetch = 0});
  for (const auto& [x, y] : loader) all.insert(all.end(), x.begin(), x.end());
  return all;
}
std::vector<std::vector<std::string>> reference(const std::string& kind) {
  std::vector<std::vector<std::string>> lines;
  std::ifstream file(SINTER_REPOSITORY "/tests/data/reference/split.txt");
  for (std::string line; std::getline(file, line);) {
    std::istringstream in(line);
    std::string word;
    in >> word;
    if (word != kind) continue;
    lines.emplace_back();
    while (in >> word) lines.back().push_back(word);
  }
  return lines;
}
template <class A, class B>
bool all_equal(const A& a, const B& b) {
  return a.shape() == b.shape() && all(a == b).item();
}

}  // namespace

TEST_CASE("random_split has PyTorch's sizes, each sample once, and another order for each draw") {
  int seen = 0;
  for (const auto& line : reference("parts")) {
    const index_t n = std::stol(line[0]);
    const std::size_t parts = std::stoul(line[1]);
    std::vector<double> fractions;
    for (std::size_t i = 0; i < parts; ++i) fractions.push_back(std::stod(line[2 + i]));
    generator gen(3);
    const auto split = random_split(gen, numbers(n), fractions);
    REQUIRE(split.size() == parts);
    std::vector<std::int64_t> all;
    for (std::size_t i = 0; i < parts; ++i) {
      CHECK(split[i].size() == std::stol(line[2 + parts + i]));
      const auto some = inputs_of(split[i]);
      all.insert(all.end(), some.begin(), some.end());
    }
    generator same(3);
    const tensor order = randperm(same, n);
    CHECK(std::equal(all.begin(), all.end(), order.begin(), order.end()));
    ++seen;
  }
  CHECK(seen == 5);
  generator gen(1);
  const auto counted = random_split(gen, numbers(10), {7, 0, 3});
  CHECK(counted[0].size() == 7);
  CHECK(counted[1].size() == 0);
  CHECK(counted[2].size() == 3);
  generator other(2);
  const auto [most, rest] = random_split(other, numbers(10), {0.9, 0.1});
  CHECK(most.size() == 9);
  CHECK(rest.size() == 1);
  const auto [first, last] = random_split(other, numbers(10), {numbers(10).size() - 3, 3});
  CHECK(first.size() == 7);
  CHECK(last.size() == 3);
  CHECK_THROWS_WITH(random_split(gen, numbers(10), {7, 2}), Contains("add up to 9, but there are 10 samples"));
  CHECK_THROWS_AS(random_split(gen, numbers(10), {11, -1}), value_error);
  CHECK_THROWS_WITH(random_split(gen, numbers(10), {0.5, 0.4}), Contains("add up to 0.9; they must add up to 1"));
  CHECK_THROWS_AS(random_split(gen, numbers(10), {1.5, -0.5}), value_error);
  CHECK_THROWS_AS(random_split(gen, numbers(10), std::vector<double>()), value_error);
  CHECK(gen.offset() == 1);
}

TEST_CASE("train_test_split has scikit-learn's sizes") {
  generator gen(5);
  for (const auto& line : reference("test")) {
    const auto [train, test] = train_test_split(gen, numbers(std::stol(line[0])), {.test_size = std::stod(line[1])});
    CHECK(train.size() == std::stol(line[2]));
    CHECK(test.size() == std::stol(line[3]));
    auto all = inputs_of(train);
    CHECK_FALSE((all.size() > 20 && std::is_sorted(all.begin(), all.end())));
    for (const std::int64_t i : inputs_of(test)) all.push_back(i);
    CHECK(std::set(all.begin(), all.end()).size() == static_cast<std::size_t>(std::stol(line[0])));
  }
  const auto [train, test] = train_test_split(gen, numbers(5), {.test_size = 0.4, .shuffle = false});
  CHECK(inputs_of(train) == std::vector<std::int64_t>{0, 1, 2});
  CHECK(inputs_of(test) == std::vector<std::int64_t>{3, 4});
  CHECK_THROWS_AS(train_test_split(gen, numbers(1)), value_error);
  CHECK_THROWS_AS(train_test_split(gen, numbers(5), {.test_size = 1}), value_error);
  CHECK_THROWS_AS(train_test_split(gen, numbers(5), {.test_size = -0.1}), value_error);
  CHECK_THROWS_WITH(train_test_split(gen, numbers(50), {.test_size = 20}),
                    Contains("test_size is 20; it is the fraction"));
}

namespace {

/// One sample after the other.
struct squares {
  index_t size() const { return 5; }
  sample<std::int64_t, std::int32_t> get(index_t i) const { return {i * i, static_cast<std::int32_t>(i)}; }
};

}  // namespace

TEST_CASE("subset and concat_dataset give the samples of their sets in the order that is asked for") {
  const concat_dataset both(numbers(3), squares(), subset(numbers(9), {8, 2}));
  CHECK(both.size() == 10);
  CHECK(inputs_of(both) == std::vector<std::int64_t>{0, 1, 2, 0, 1, 4, 9, 16, 8, 2});
  const std::vector<index_t> rows = {9, 4, 0, 7, 8, 4};
  const auto [x, y] = both.gather(rows);
  CHECK(all_equal(x, tensor<std::int64_t, 1>{2, 1, 0, 16, 8, 1}));
  CHECK(all_equal(y, tensor<std::int32_t, 1>{0, 1, 0, 4, 0, 1}));
  CHECK(inputs_of(subset(both, {9, 3, 3})) == std::vector<std::int64_t>{2, 0, 0});
  CHECK_THROWS_WITH(subset(numbers(3), {0, 3}), "subset: row 3 of a dataset of 3 samples");
  CHECK_THROWS_AS(both.gather(std::vector<index_t>{10}), index_error);
  CHECK_THROWS_AS(subset(numbers(3), {0}).gather(std::vector<index_t>{1}), index_error);
  const tensor_dataset wide(zeros<float>({2, 3}), zeros<float>({2})), narrow(zeros<float>({2, 2}), zeros<float>({2}));
  const concat_dataset uneven(wide, narrow);
  CHECK_THROWS_WITH(uneven.gather(std::vector<index_t>{0, 2}), Contains("samples of shape (2,) and (3,) in one batch"));
}

TEST_CASE("sequences are padded to the longest of a batch, with lengths and a mask") {
  const std::vector<tensor<float, 2>> sequences = {{{1, 2}, {3, 4}}, {{5, 6}}, zeros<float>({0, 2}), {{7, 8}, {9, 0}}};
  const auto [x, lengths] = pad_sequence(sequences, {.padding_value = -1});
  CHECK(all_equal(x, tensor<float, 3>{{{1, 2}, {3, 4}}, {{5, 6}, {-1, -1}}, {{-1, -1}, {-1, -1}}, {{7, 8}, {9, 0}}}));
  CHECK(all_equal(lengths, tensor<std::int64_t, 1>{2, 1, 0, 2}));
  const tensor<float, 3> views = arange<float>(12).reshape({2, 3, 2});
  CHECK(all_equal(pad_sequence(std::vector{views[0].transpose(), views[1].transpose()}).values, views.transpose()));

  const sequence_dataset set(sequences, arange<std::int64_t>(4), {.padding_value = 5});
  data_loader loader(subset(set, {1, 2, 3}), {.batch_size = 2});
  std::vector<index_t> steps;
  for (const auto& batch : loader) {
    steps.push_back(batch.inputs.shape()[1]);
    CHECK(batch.size() == batch.targets.extent(0));
    if (steps.size() == 1) CHECK(all_equal(batch.inputs.mask(), tensor<bool, 2>{{true}, {false}}));
    if (steps.size() == 2) CHECK(all_equal(batch.inputs.values, tensor<float, 3>{{{7, 8}, {9, 0}}}));
  }
  CHECK(steps == std::vector<index_t>{1, 2});
  CHECK(pad_sequence(sequences, {.length = 7}).shape() == extents<3>{{4, 7, 2}});
  CHECK_THROWS_WITH(pad_sequence(sequences, {.length = 1}), Contains("2 steps does not fit the length 1"));
  CHECK_THROWS_AS(pad_sequence(std::vector<tensor<float, 1>>()), value_error);
  CHECK_THROWS_AS(pad_sequence(std::vector{zeros<float>({1, 2}), zeros<float>({1, 3})}), shape_error);
  CHECK_THROWS_AS(pad_sequence(std::vector{zeros<std::uint8_t>({1})}, {.padding_value = 256}), value_error);
  CHECK_THROWS_AS(pad_sequence(std::vector{tensor<float, 1>()}), value_error);
  CHECK_THROWS_AS(sequence_dataset(sequences, arange<std::int64_t>(3)), shape_error);
}

TEST_CASE("normalizer has StandardScaler's moments, undoes itself, and is saved with a model") {
  const auto numbers_of = [](const char* kind) {
    std::vector<double> all;
    const auto line = reference(kind).at(0);
    for (const std::string& word : line) all.push_back(std::stod(word));
    return all;
  };
  const auto x = from_data<double>(numbers_of("table"), {6, 3});
  const auto moments = numbers_of("moments");
  normalizer<double> scale(3);
  CHECK(all_equal(eval(scale(x)), x));  // before fit()
  scale.fit(x);
  for (index_t c = 0; c < 3; ++c) {
    CHECK(scale.mean.value()(c) == Approx(moments[static_cast<std::size_t>(c)]).epsilon(1e-14));
    CHECK(scale.deviation.value()(c) == Approx(moments[static_cast<std::size_t>(c + 3)]).epsilon(1e-14));
  }
  const tensor<double, 2> y = scale(x);
  CHECK(std::abs(eval(mean(y)).item()) < 1e-12);
  CHECK(allclose(scale.inverse(y), x));

  const folder dir;
  nn::save(scale, dir.file("scale.safetensors"));
  normalizer<double> other(3);
  nn::load(other, dir.file("scale.safetensors"));
  CHECK(all_equal(eval(infer(other)(x)), y));

  const tensor<std::uint8_t, 4> images = {{{{1, 3}}, {{10, 10}}}, {{{5, 7}}, {{10, 10}}}};  // (2,2,1,2)
  generator gen(1);
  nn::sequential model{normalizer(2), nn::flatten(), nn::linear(4, 1, gen)};
  model.get<0>().fit(images);
  CHECK(all_equal(model.get<0>().mean.value(), tensor<float, 1>{4, 10}));
  CHECK(all_equal(model.get<0>().deviation.value(), tensor<float, 1>{std::sqrt(5.f), 1}));
  const tensor<float, 4> floats = cast<float>(images);
  CHECK(eval(model.get<0>()(images))(0, 0, 0, 0) == Approx(-3 / std::sqrt(5.)));
  CHECK(model.parameter_count() == 5);
  CHECK(model(floats).shape() == extents<2>{{2, 1}});

  normalizer targets(1);
  targets.fit(variable(tensor<float, 1>{1, 2, 3}) * 2.f);
  CHECK(targets.mean.value()(0) == 4);
  CHECK(allclose(targets.inverse(targets(tensor<float, 1>{5, 6})), tensor<float, 1>{5, 6}));
  CHECK_THROWS_WITH(targets.fit(x), "normalizer: fit() on 3 features, but it is made for 1");
  CHECK_THROWS_WITH(targets(cast<float>(x)),
                    Contains("normalizer: forward() on the shape (6, 3), but it is made for 1"));
  CHECK_THROWS_WITH(scale(tensor<double, 1>{1, 2, 3}), Contains("on the shape (3,), but it is made for 3 features"));
  CHECK_THROWS_WITH(scale.inverse(zeros<double>({2, 1})), Contains("normalizer: inverse() on the shape (2, 1)"));
  CHECK_THROWS_WITH(normalizer(tensor<float, 1>{0, 0}, tensor<float, 1>{1, 0}), Contains("feature 1 is 0; it must be"));
  CHECK_THROWS_AS(normalizer(tensor<float, 1>{0, 0}, tensor<float, 1>{-1, 1}), value_error);
  CHECK_THROWS_WITH(normalizer(1).fit(tensor<double, 1>{1e200, -1e200}), Contains("so large that their variance"));
  CHECK_THROWS_AS(targets.fit(zeros<float>({0})), value_error);
  CHECK_THROWS_WITH(targets.fit(tensor<float, 1>{1, std::numeric_limits<float>::quiet_NaN()}),
                    Contains("feature 0 has elements that are not finite"));
  CHECK(targets.mean.value()(0) == 4);
  const normalizer known(tensor<float, 1>{1, 2}, tensor<float, 1>{2, 4});
  CHECK(all_equal(eval(known(tensor<float, 2>{{3, 10}})), tensor<float, 2>{{1, 2}}));
}
