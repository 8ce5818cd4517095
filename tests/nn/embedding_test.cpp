// tests/nn/embedding_test.cpp: lookups of rows, their gradients against PyTorch's, and the layers that hold a table.
#include "../catch.hpp"

#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>

#include <sinter/sinter.hpp>
#include "../same_bits.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

using ids = tensor<std::int64_t, 1>;

template <class A, class B>
double distance(const A& a, const B& b) {
  REQUIRE(a.shape() == b.shape());
  return eval(max(abs(cast<double>(a) - cast<double>(b)))).item();
}

/// One line of reference/embedding.csv.
struct reference {
  std::string name;
  nn::embedding_settings of_rows;
  nn::embedding_bag_settings of_bags;
  ids places, offsets;
  tensor<double, 1> weights, seed, y, dtable, dweights;
  tensor<double, 2> table, after;
};

class reader {
 public:
  explicit reader(const std::string& line) : in_(line) {}
  std::string word() {
    std::string field;
    std::getline(in_, field, ',');
    return field;
  }
  double number() { return std::strtod(word().c_str(), nullptr); }
  template <class T>
  tensor<T, 1> list() {
    tensor<T, 1> x = empty<T>({static_cast<index_t>(number())});
    for (T& v : x) v = static_cast<T>(number());
    return x;
  }

 private:
  std::istringstream in_;
};

std::vector<reference> references() {
  std::vector<reference> all;
  std::ifstream file(SINTER_REPOSITORY "/tests/nn/reference/embedding.csv");
  for (std::string line; std::getline(file, line);) {
    reader in(line);
    reference r;
    r.name = in.word();
    const auto rows = static_cast<index_t>(in.number()), columns = static_cast<index_t>(in.number());
    const auto maybe = [&](auto& to) {
      if (const std::string text = in.word(); text != "none")
        to =
            static_cast<typename std::remove_reference_t<decltype(to)>::value_type>(std::strtod(text.c_str(), nullptr));
    };
    maybe(r.of_rows.padding_idx);
    r.of_rows.scale_grad_by_freq = in.number() != 0;
    maybe(r.of_rows.max_norm);
    r.of_rows.norm_type = in.number();
    const std::string mode = in.word();
    r.of_bags = {mode == "sum"   ? bag_mode::sum
                 : mode == "max" ? bag_mode::max
                                 : bag_mode::mean,
                 r.of_rows.padding_idx,
                 r.of_rows.max_norm,
                 r.of_rows.norm_type,
                 r.of_rows.scale_grad_by_freq,
                 in.number() != 0};
    r.places = in.list<std::int64_t>();
    r.offsets = in.list<std::int64_t>();
    r.weights = in.list<double>();
    r.table = in.list<double>().reshape({rows, columns});
    r.seed = in.list<double>();
    r.y = in.list<double>();
    r.dtable = in.list<double>();
    r.dweights = in.list<double>();
    r.after = in.list<double>().reshape({rows, columns});
    all.push_back(r);
  }
  return all;
}

/// The reference in elements T on D: by how much values, gradients and the table after the call are off. With `sparse`
/// the gradient of the table is held by rows.
template <class T, device D>
double error_of(reference r, bool sparse = false) {
  r.of_rows.sparse = r.of_bags.sparse = sparse;
  const auto there = [](const auto& x) { return eval(cast<T>(x)).template to<D>(); };
  const auto places = r.places.to<D>();
  const tensor<T, 2, D> start = there(r.table).clone();
  const auto finish = [&](const auto& layer, const auto& y, const auto& weights) {
    const auto seed = there(r.seed).reshape({y.shape()[0], y.shape()[1]});
    y.backward(seed);
    double worst = std::max({distance(y.value().template to<cpu>().flatten(), r.y),
                             distance(layer.weight.grad().template to<cpu>().flatten(), r.dtable),
                             distance(layer.weight.value().template to<cpu>(), r.after)});
    if (r.weights.numel() > 0)
      worst = std::max(worst, distance(weights.grad().template to<cpu>().flatten(), r.dweights));
    return worst;
  };
  if (r.name == "embedding") {
    const auto layer = nn::embedding<T, D>::from_pretrained(start, false, r.of_rows);
    const variable y = layer(places);
    return finish(layer, y, y);
  }
  const auto layer = nn::embedding_bag<T, D>::from_pretrained(start, false, r.of_bags);
  const bool ragged = r.offsets.numel() > 0, weighted = r.weights.numel() > 0;
  const auto pairs = places.reshape({2, -1});
  const auto offsets = r.offsets.to<D>();
  const variable<T, 1, D> weights = there(r.weights);
  if (ragged && weighted) {
    const variable y = layer(places, offsets, weights);
    return finish(layer, y, weights);
  }
  if (ragged) {
    const variable y = layer(places, offsets);
    return finish(layer, y, weights);
  }
  if (weighted) {
    const variable<T, 2, D> square = weights.reshape({2, -1});
    const variable y = layer(pairs, square);
    return finish(layer, y, weights);
  }
  const variable y = layer(pairs);
  return finish(layer, y, weights);
}

}  // namespace

TEST_CASE("lookups, their gradients and max_norm are PyTorch's", "[nn][embedding]") {
  int n = 0;
  for (const reference& r : references()) {
    INFO("case " << n << ": " << r.name);
    CHECK(error_of<double, cpu>(r) < 1e-13);
    CHECK(error_of<float, cpu>(r) < 1e-5);
    CHECK(error_of<double, numa<0>>(r) < 1e-13);
    CHECK(error_of<double, cpu>(r, true) < 1e-13);
    ++n;
  }
  CHECK(n == 33);
}

TEST_CASE("embedding takes ids of every integer type and rank, and tables in any layout", "[nn][embedding]") {
  generator gen(1);
  const auto table = randn<float>(gen, {6, 37});
  const ids list{5, 0, 5, 3};
  const tensor y = embedding(list, table);
  CHECK(same_bits(y, index_select(table, 0, list)));
  CHECK(same_bits(tensor(embedding(eval(cast<std::int8_t>(list)), table)), y));
  CHECK(same_bits(tensor(embedding(eval(cast<std::uint8_t>(list)), table)), y));
  CHECK(same_bits(tensor(embedding(eval(cast<std::int16_t>(list)), table)), y));
  CHECK(same_bits(tensor(embedding(list + 0, table)), y));
  CHECK(same_bits(tensor(embedding(list.reshape({2, 1, 2}), table)).reshape({4, 37}), y));
  CHECK(same_bits(tensor(embedding(list[3], table)), y[3]));
  CHECK(same_bits(tensor(embedding(list, table.transpose().contiguous().transpose())), y));
  CHECK(tensor(embedding(tensor<int, 1>(empty<int>({0})), table)).shape() == extents<2>{{0, 37}});
  CHECK(distance(tensor(tanh(embedding(list, table * 2)) + 1), tensor(tanh(y * 2) + 1)) == 0);
}

TEST_CASE("gradients of lookups are the same bits for any number of threads", "[nn][embedding]") {
  generator gen(2);
  const index_t rows = 300, columns = 70, n = 20000;
  // One id has half of the places, so that its columns are shared out.
  tensor<std::int64_t, 1> list = randint<std::int64_t>(gen, 0, 2 * rows, {n});
  list = where(list < rows, list, zeros<std::int64_t>({n}) + 7);
  const auto seed = randn<float>(gen, {n, columns});
  const auto offsets = eval(cast<std::int64_t>(arange<int>(0, 500) * 40));
  const auto bag_seed = randn<float>(gen, {500, columns});
  const auto gradients = [&](int threads) {
    set_num_threads(threads);
    std::vector<tensor<float, 1>> all;
    const variable<float, 2> table = ones<float>({rows, columns});
    const variable<float, 1> weights = ones<float>({n});
    for (int pass = 0; pass < 2; ++pass) {  // the second adds
      variable y = embedding(list, table, {.padding_idx = 3, .scale_grad_by_freq = pass == 1});
      y.backward(seed);
      variable z = embedding_bag(list, offsets, table, {.mode = pass == 0 ? bag_mode::mean : bag_mode::max});
      z.backward(bag_seed);
      variable s = embedding_bag(list, offsets, table, weights, {.mode = bag_mode::sum});
      s.backward(bag_seed);
      all.push_back(table.grad().clone().flatten());
      all.push_back(weights.grad().clone());
    }
    return all;
  };
  const int before = num_threads();
  const auto one = gradients(1), three = gradients(3);
  set_num_threads(before);
  for (std::size_t i = 0; i < one.size(); ++i) CHECK(same_bits(one[i], three[i]));
}

TEST_CASE("gradients of rows with many places keep their digits", "[nn][embedding]") {
  const index_t n = 1 << 18;
  const auto narrow = [&]<class T>(T) {
    const variable<T, 2> table = zeros<T>({2, 3});
    variable y = embedding(zeros<std::int8_t>({n}), table);
    y.backward(full<T>({n, 3}, T(0.125f)));
    return static_cast<double>(table.grad()(0, 1));
  };
  CHECK(narrow(sinter::half()) == n / 8);
  CHECK(narrow(bfloat16()) == n / 8);
  const variable<float, 2> table = zeros<float>({2, 3});
  variable y = embedding(zeros<int>({n}), table);
  y.backward(full<float>({n, 3}, 0.1f));
  CHECK(table.grad()(0, 2) == Approx(0.1 * n).epsilon(1e-5));
  CHECK(table.grad()(1, 2) == 0);
}

TEST_CASE("lookups name an id out of range, and its place", "[nn][embedding]") {
  const auto table = zeros<float>({4, 3});
  CHECK_THROWS_WITH(embedding(tensor<int, 2>{{0, 1}, {3, 4}}, table),
                    Contains("embedding: id 4 at position 3 is out of range [0, 4)"));
  CHECK_THROWS_AS(embedding(ids{-1}, table), index_error);
  CHECK_THROWS_AS(embedding(ids{0}, zeros<float>({0, 3})), index_error);
  CHECK_THROWS_WITH(embedding(ids{0}, table, {.padding_idx = 4}), Contains("padding_idx 4 is out of range [-4, 4)"));
  CHECK_THROWS_AS(embedding(ids{0}, tensor<float, 2>()), shape_error);
  CHECK_THROWS_AS(embedding(ids(), table), shape_error);
  const ids list{0, 1};
  const auto e = embedding(list, table);
  list.in_place() += 3;
  CHECK_THROWS_AS(eval(e), index_error);
  const variable w = table;
  const ids own{0, 1};
  const variable y = embedding(own, w);
  own.in_place() += 1;
  CHECK_THROWS_WITH(y.backward(ones<float>({2, 3})), Contains("modified in place"));
}

TEST_CASE("bags take offsets and weights that fit, and nothing else", "[nn][embedding]") {
  const auto table = ones<float>({4, 3});
  const ids list{0, 1, 2, 3};
  CHECK_THROWS_WITH(embedding_bag(list, ids{0, 5}, table), Contains("offset 5 at position 1 is out of range [0, 5)"));
  CHECK_THROWS_WITH(embedding_bag(list, ids{1, 2}, table), Contains("the first offset is 1; it must be 0"));
  CHECK_THROWS_WITH(embedding_bag(list, ids{0, 3, 2}, table),
                    Contains("offset 2 at position 2 is below the one before it, 3"));
  CHECK_THROWS_WITH(embedding_bag(ids{9}, ids{0}, table), Contains("embedding_bag: id 9 at position 0"));
  CHECK_THROWS_AS(embedding_bag(list, ids(empty<std::int64_t>({0})), table, {.include_last_offset = true}),
                  shape_error);
  CHECK_THROWS_WITH(embedding_bag(list, ids{0}, table, ones<float>({4})), Contains("bag_mode::sum"));
  CHECK_THROWS_AS(embedding_bag(list, ids{0}, table, {.mode = bag_mode::max, .scale_grad_by_freq = true}), value_error);
  CHECK_THROWS_WITH(embedding_bag(list, ids{0}, table, ones<float>({3}), {.mode = bag_mode::sum}),
                    Contains("weights of shape (3,) for ids of shape (4,)"));
  const ids none = empty<std::int64_t>({0});
  CHECK(tensor(embedding_bag(none, none, table)).shape() == extents<2>{{0, 3}});
  for (const bag_mode mode : {bag_mode::sum, bag_mode::mean, bag_mode::max}) {
    CHECK(eval(max(abs(tensor(embedding_bag(none, ids{0, 0}, table, {.mode = mode}))))).item() == 0);
    // Only padding, and ids behind the last offset.
    const tensor y = embedding_bag(list, ids{0, 1, 3}, table, {mode, 0, false, true});
    CHECK(y(0, 0) == 0);
    CHECK(y(1, 0) == (mode == bag_mode::sum ? 2.0f : 1.0f));
  }
}

TEST_CASE("a bag's largest elements are NaN where there is one, and the first of equals get the gradient",
          "[nn][embedding]") {
  constexpr float none = std::numeric_limits<float>::quiet_NaN(), least = -std::numeric_limits<float>::infinity();
  const variable<float, 2> table = tensor<float, 2>{{least, none, 2}, {least, 1, 2}};
  variable y = embedding_bag(tensor<int, 2>{{1, 0, 1}}, table, {.mode = bag_mode::max});
  CHECK(y(0, 0) == least);
  CHECK(std::isnan(y(0, 1)));
  CHECK(y(0, 2) == 2);
  y.backward(ones<float>({1, 3}));
  CHECK(same_bits(table.grad(), tensor<float, 2>{{0, 1, 0}, {1, 0, 1}}));
}

TEST_CASE("an embedding begins as PyTorch's does", "[nn][embedding]") {
  generator gen(3);
  const nn::embedding words(400, 50, gen, {.padding_idx = -1});
  const tensor rows = words.weight.value().slice(0, 0, 399);
  CHECK(std::abs(eval(mean(rows)).item()) < 0.03);
  CHECK(eval(mean(square(rows))).item() == Approx(1).margin(0.03));
  CHECK(eval(max(abs(words.weight.value()[399]))).item() == 0);
  CHECK(words.named_parameters().size() == 1);
  CHECK(words.named_parameters()[0].name == "weight");
  CHECK_THROWS_AS(nn::embedding(-1, 2, gen), shape_error);
  CHECK_THROWS_AS(nn::embedding(4, 2, gen, {.padding_idx = 4}), index_error);
  CHECK_THROWS_AS(nn::embedding(4, 2, gen, {.norm_type = 0}), value_error);
  CHECK_THROWS_AS(nn::embedding_bag(4, 2, gen, {.max_norm = -1.0}), value_error);
}

TEST_CASE("embeddings move, infer, and keep their settings and state", "[nn][embedding]") {
  generator gen(4);
  const nn::sequential model{nn::embedding(9, 4, gen, {.padding_idx = 2, .max_norm = 1.0}), nn::linear(4, 3, gen)};
  const tensor<int, 2> list{{1, 2, 8}, {2, 2, 0}};
  const tensor y = infer(model)(list);
  CHECK(y.shape() == extents<3>{{2, 3, 3}});
  CHECK(same_bits(eval(model(list)).detach(), y));
  const auto there = model.to<numa<0>>();
  CHECK(there.get<0>().settings.padding_idx == 2);
  CHECK(there.get<0>().settings.max_norm == 1.0);
  CHECK(same_bits(eval(there(list.to<numa<0>>())).detach(), y));
  const nn::sequential other{nn::embedding(9, 4, gen, {.max_norm = 1.0}), nn::linear(4, 3, gen)};
  nn::load_state(other, nn::state(model));
  CHECK(same_bits(eval(infer(other)(list)), y));
  CHECK(nn::summary<std::int64_t>(model, {2, 3}).parameters == 9 * 4 + 4 * 3 + 3);
  const nn::embedding_bag bag(9, 4, gen, {.mode = bag_mode::sum});
  const auto far = bag.to<numa<0>>();
  const ids flat{1, 2, 8, 0}, offsets{0, 1};
  CHECK(same_bits(eval(infer(far)(flat.to<numa<0>>(), offsets.to<numa<0>>())), eval(infer(bag)(flat, offsets))));
}

TEST_CASE("one table in two places gathers both gradients", "[nn][embedding]") {
  generator gen(5);
  nn::sequential model{nn::embedding(6, 4, gen), nn::linear<float, cpu, nn::tracked, false>(4, 6, gen)};
  model.get<1>().weight = model.get<0>().weight;
  CHECK(model.parameter_count() == 24);
  const ids list{1, 4, 1}, labels{2, 0, 5};
  const variable loss = cross_entropy(model(list), labels);
  loss.backward();
  const tensor table = model.get<0>().weight.value();
  const variable<float, 2> apart = table.clone(), head = table.clone();
  const variable same = cross_entropy(linear(embedding(list, apart), head), labels);
  same.backward();
  CHECK(distance(model.get<1>().weight.grad(), tensor(apart.grad() + head.grad())) < 1e-6);
  const auto there = model.to<numa<0>>();  // still tied
  CHECK(there.parameter_count() == 24);
  nn::sequential loaded{nn::embedding(6, 4, gen), nn::linear<float, cpu, nn::tracked, false>(4, 6, gen)};
  loaded.get<1>().weight = loaded.get<0>().weight;
  nn::load_state(loaded, nn::state(model));
  CHECK(same_bits(eval(infer(loaded)(list)), eval(infer(model)(list))));
}

TEST_CASE("max_norm is a write to the table, unless rows are short enough", "[nn][embedding]") {
  generator gen(6);
  const nn::embedding words(5, 64, gen, {.max_norm = 2.0});
  const ids some{1, 3, 1}, others{0};
  variable y = words(some);
  const tensor norms = norm(words.weight.value(), 1);
  CHECK(norms(1) == Approx(2).epsilon(1e-5));
  CHECK(norms(0) > 3);
  y.backward(ones<float>({3, 64}));  // of the same step
  CHECK(words.weight.grad()(1, 0) == 2);

  const variable reads = sum(words.weight * words.weight);
  static_cast<void>(eval(words(some)));  // writes nothing
  reads.backward({.retain_graph = true});
  static_cast<void>(eval(words(others)));
  CHECK_THROWS_WITH(reads.backward(), Contains("modified in place"));
}

TEST_CASE("max_norm takes rows whose squares no double holds", "[nn][embedding]") {
  const auto words = nn::embedding<double>::from_pretrained(full<double>({2, 4}, 1e200), false, {.max_norm = 1e200});
  CHECK(tensor(infer(words)(ids{1}))(0, 0) == Approx(0.5e200));
}

TEST_CASE("a pretrained table is shared, and frozen unless asked otherwise", "[nn][embedding]") {
  generator gen(7);
  const auto table = randn<float>(gen, {5, 3});
  const auto frozen = nn::embedding<>::from_pretrained(table);
  const auto trained = nn::embedding<>::from_pretrained(table, false, {.padding_idx = 0});
  const ids list{0, 2};
  const variable loss = sum(frozen(list) * trained(list));
  loss.backward();
  CHECK(!frozen.weight.has_grad());
  CHECK(eval(max(abs(trained.weight.grad()[0]))).item() == 0);
  CHECK(distance(trained.weight.grad()[2], table[2]) == 0);
  table.in_place() *= 2;
  CHECK(same_bits(eval(infer(frozen)(list)), index_select(table, 0, list)));
  CHECK(frozen.to<numa<0>>().frozen);
  const auto bag = nn::embedding_bag<>::from_pretrained(table, true, {.mode = bag_mode::sum});
  CHECK(distance(eval(bag(list.reshape({1, 2}))).detach()[0], tensor(table[0] + table[2])) == 0);
  CHECK_THROWS_AS(nn::embedding<>::from_pretrained(table, true, {.padding_idx = 5}), index_error);
}

TEST_CASE("an embedding learns, and its padding row does not", "[nn][embedding]") {
  generator gen(8);
  nn::sequential model{nn::embedding_bag(12, 8, gen, {.mode = bag_mode::mean, .padding_idx = 0}),
                       nn::linear(8, 2, gen)};
  const tensor<std::int64_t, 2> texts = randint<std::int64_t>(gen, 0, 12, {64, 5});
  const tensor<std::int64_t, 1> labels = cast<std::int64_t>(sum(cast<float>(texts == 7), 1) > 0.0f);
  optim::adam optimizer(model, {.lr = 0.05});
  float last = 1;
  for (int i = 0; i < 80; ++i) {
    optimizer.zero_grad();
    variable loss = cross_entropy(model(texts), labels);
    loss.backward();
    optimizer.step();
    last = loss.item();
  }
  CHECK(last < 0.05f);
  CHECK(eval(max(abs(model.get<0>().weight.value()[0]))).item() == 0);
}

namespace {

template <class I, class W>
concept looks_up = requires(const I& i, const W& w) { embedding(i, w); };
template <class... A>
concept joins = requires(const A&... a) { embedding_bag(a...); };
template <class... A>
concept bag_takes = requires(const nn::embedding_bag<>& bag, const A&... a) { bag(a...); };
template <class X>
concept layer_takes = requires(const nn::embedding<>& layer, const X& x) { layer(x); };

using table = tensor<float, 2>;
using there = tensor<std::int64_t, 1, numa<0>>;

static_assert(looks_up<ids, table> && looks_up<tensor<std::uint8_t, 7>, variable<double, 2>>);
static_assert(looks_up<there, variable<bfloat16, 2, numa<0>>> &&
              looks_up<tensor<int, 1, cuda<0>>, tensor<float, 2, cuda<0>>>);
static_assert(!looks_up<ids, tensor<float, 2, numa<0>>> && !looks_up<tensor<float, 1>, table>);
static_assert(!looks_up<ids, tensor<int, 2>> && !looks_up<ids, tensor<float, 1>> && !looks_up<tensor<int, 8>, table>);
static_assert(!looks_up<table, ids> && !looks_up<tensor<bool, 1>, table> && !looks_up<int, table>);

static_assert(joins<tensor<int, 2>, table> && joins<ids, ids, table> && joins<ids, tensor<int, 1>, table>);
static_assert(joins<tensor<int, 2>, table, table> && joins<ids, ids, table, variable<float, 1>>);
static_assert(!joins<ids, table> && !joins<tensor<int, 2>, ids, table> && !joins<ids, there, table>);
static_assert(!joins<ids, tensor<float, 1>, table> && !joins<ids, ids, table, tensor<double, 1>>);
static_assert(!joins<ids, ids, table, table> && !joins<ids, ids, table, tensor<float, 1, numa<0>>>);

static_assert(layer_takes<ids> && layer_takes<tensor<std::uint8_t, 3>> && !layer_takes<tensor<float, 1>> &&
              !layer_takes<there>);
static_assert(bag_takes<tensor<int, 2>> && bag_takes<ids, ids> && bag_takes<ids, ids, tensor<float, 1>>);
static_assert(bag_takes<tensor<int, 2>, table> && !bag_takes<ids> && !bag_takes<ids, there>);
static_assert(!bag_takes<ids, ids, tensor<double, 1>> && !bag_takes<tensor<int, 2>, ids>);

}  // namespace
