// tests/cuda/embedding_test.cpp: what the table of kernel ops does not show of embeddings on a GPU: words of rows,
// other layouts, options, max_norm, and ids out of range.
#include "compare.hpp"

#include <limits>

using namespace sinter;
using g0 = cuda<0>;

namespace {

const tensor<std::int64_t, 1> places{3, 0, 3, 6, 5, 5, 1, 3, 2, 5};

/// x where the table is.
template <class X, class W>
auto beside(const X& x, const W&) {
  return x.template to<device_of<W>>();
}

}  // namespace

TEST_CASE("embedding of any width and layout on a GPU", "[cuda]") {
  const auto padded = [](const auto& t) { return embedding(beside(places, t), t, {.padding_idx = 5}); };
  const auto means = [](const auto& t) { return embedding(beside(places, t), t, {.scale_grad_by_freq = true}); };
  const auto turned = [](const auto& t) { return embedding(beside(places, t), t.transpose()); };
  for (const index_t width : {1, 3, 4, 8, 33}) {
    CHECK(compare::values(padded, compare::numbers({7, width})) == 0);
    CHECK(compare::values(padded, compare::numbers<sinter::half>({7, width})) == 0);
    CHECK(compare::gradients(padded, compare::numbers({7, width})) < 1e-6);
    CHECK(compare::gradients(means, compare::numbers<double>({7, width})) < 1e-12);
    CHECK(compare::gradients(turned, compare::numbers({width, 7})) < 1e-6);
  }
}

TEST_CASE("gradients of tables that are held by rows on a GPU", "[cuda]") {
  const auto of = [](const auto& table, const auto& list, const auto& how) {
    variable y = embedding(beside(list, table), table, how);
    sum(square(y)).backward();
  };
  for (const embedding_options how : {embedding_options{}, {.padding_idx = 5}, {.scale_grad_by_freq = true}}) {
    const auto start = compare::numbers({7, 33});
    const variable dense = start.clone();
    const variable sparse = row_sparse(start.to<g0>());
    const auto pass = [&](const auto& list) {
      of(dense, list, how);
      of(sparse, list, how);
    };
    pass(places);
    pass(places.slice(0, 3, 6));
    // Sums have a row for each place; what is no row is -1, and holds zeros.
    const auto [numbers, values] = row_grad(sparse);
    const tensor<std::int64_t, 1> of_host = numbers.to<cpu>();
    CHECK(of_host.numel() > 7);
    CHECK(min(of_host).item() == -1);
    optim::adagrad a(dense, {.lr = 0.1}), b(sparse, {.lr = 0.1});
    optim::sgd c(dense, {.lr = 0.1}), d(sparse, {.lr = 0.1});
    a.step(), b.step(), c.step(), d.step();
    CHECK(compare::distance(sparse.value().to<cpu>(), dense.value()) < 1e-6);
    CHECK(compare::distance(sparse.grad().to<cpu>(), dense.grad()) < 1e-5);
    sum(square(sparse)).backward();
    sum(square(dense)).backward();
    CHECK(compare::distance(sparse.grad().to<cpu>(), dense.grad()) < 1e-5);
  }
  const auto start = compare::numbers({7, 33});
  const variable dense = start.clone();
  const variable sparse = row_sparse(start.to<g0>());
  const auto bags = [](const auto& table) {
    const auto list = beside(places.reshape({5, 2}), table);
    for (const bag_mode mode : {bag_mode::sum, bag_mode::mean, bag_mode::max})
      sum(square(embedding_bag(list, table, {.mode = mode}))).backward();
  };
  bags(dense);
  bags(sparse);
  CHECK(compare::distance(sparse.grad().to<cpu>(), dense.grad()) < 1e-5);
}

TEST_CASE("bags with padding, with a last offset, and in tables of other layouts on a GPU", "[cuda]") {
  const tensor<int, 1> offsets{0, 4, 4, 9}, ends{0, 2, 2, 7};
  for (const bag_mode mode : {bag_mode::sum, bag_mode::mean, bag_mode::max}) {
    const auto padded = [&](const auto& t) {
      return embedding_bag(beside(places, t), beside(offsets, t), t, {.mode = mode, .padding_idx = 5});
    };
    const auto ended = [&](const auto& t) {
      return embedding_bag(beside(places, t), beside(ends, t), t,
                           {.mode = mode, .scale_grad_by_freq = mode != bag_mode::max, .include_last_offset = true});
    };
    const auto turned = [&](const auto& t) {
      return embedding_bag(beside(places.reshape({2, 5}), t), t.transpose(), {.mode = mode});
    };
    CHECK(compare::values(padded, compare::numbers<sinter::half>({7, 8})) < 1e-3);
    CHECK(compare::gradients(padded, compare::numbers({7, 33})) < 1e-6);
    CHECK(compare::gradients(ended, compare::numbers<double>({7, 3})) < 1e-12);
    CHECK(compare::values(ended, compare::numbers<double>({7, 3})) < 1e-12);
    CHECK(compare::gradients(turned, compare::numbers({9, 7})) < 1e-6);
  }
  const auto weighted = [&](const auto& t, const auto& w) {
    return embedding_bag(beside(places, t), beside(ends, t), t, w,
                         {.mode = bag_mode::sum, .padding_idx = 5, .include_last_offset = true});
  };
  CHECK(compare::gradients(weighted, compare::numbers({7, 33}), compare::numbers({10})) < 1e-5);
}

TEST_CASE("max_norm on a GPU", "[cuda]") {
  for (const double p : {1.0, 2.0, 3.0, std::numeric_limits<double>::infinity()}) {
    const nn::embedding_settings how{.max_norm = 0.5, .norm_type = p};
    const auto here = nn::embedding<>::from_pretrained(compare::numbers({7, 300}), false, how);
    const auto there = here.to<g0>();
    const tensor y = infer(here)(places);
    CHECK(compare::distance(eval(infer(there)(places.to<g0>())), y) < 1e-6);
    CHECK(compare::distance(there.weight.value(), here.weight.value()) < 1e-6);
  }
  // Squares that are beyond what a float holds.
  const auto large = nn::embedding<>::from_pretrained(full<float>({7, 300}, 1e25f), false, {.max_norm = 1.0}).to<g0>();
  const tensor y = tensor(infer(large)(places.to<g0>())).to<cpu>();
  CHECK(eval(max(abs(norm(y, -1) - 1))).item() < 1e-5);
}

TEST_CASE("an id out of range on a GPU is an error where the host next waits, and reads and writes nothing", "[cuda]") {
  const auto table = compare::numbers({4, 3}).to<g0>();
  const auto wrong = tensor<std::int64_t, 1>{1, 9, -1}.to<g0>();
  const variable<float, 2, g0> w = table;
  const variable y = embedding(wrong, w);
  CHECK_THROWS_WITH(y.value().to<cpu>(), Catch::Contains("embedding: id 9 at position 1 is out of range [0, 4)"));
  const tensor rows = y.value().to<cpu>();
  CHECK(rows(0, 0) == table.to<cpu>()(1, 0));
  CHECK(rows(1, 0) == 0);
  y.backward(ones<float, g0>({3, 3}));
  const tensor dw = w.grad().to<cpu>();
  CHECK(eval(sum(dw)).item() == 3);
  CHECK(dw(1, 2) == 1);
  const auto bags = [&](const tensor<std::int64_t, 1>& offsets) {
    return tensor(embedding_bag(tensor<std::int64_t, 1>{0, 1}.to<g0>(), offsets.to<g0>(), table)).template to<cpu>();
  };
  CHECK_THROWS_WITH(bags({0, 3}), Catch::Contains("embedding_bag: offset 3 at position 1 is out of range [0, 3)"));
  CHECK(bags({2, 1})(0, 0) == 0);  // decreasing: an empty bag
}
