// tests/nn/row_gradient_test.cpp: gradients of tables that are held by rows, and what reads them.
#include <sinter/sinter.hpp>

#include "../catch.hpp"
#include "../same_bits.hpp"

using namespace sinter;
using Catch::Matchers::Contains;

namespace {

using ids = tensor<std::int64_t, 1>;
constexpr index_t rows = 40, columns = 19;

struct tables {
  tensor<float, 2> start;
  variable<float, 2> sparse, dense;
  explicit tables(unsigned seed = 1) {
    generator gen(seed);
    start = randn<float>(gen, {rows, columns});
    sparse = row_sparse(start.clone());
    dense = start.clone();
  }
  /// f of each.
  template <class F>
  void both(const F& f) const {
    f(sparse);
    f(dense);
  }
  void pass(const ids& list) const {
    both([&](const auto& table) { sum(square(embedding(list, table))).backward(); });
  }
};

/// Of what holds a gradient by rows, all of it.
tensor<float, 2> filled(const row_gradient<float>& g) {
  auto all = zeros<float>({rows, columns});
  for (index_t i = 0; i < g.rows.numel(); ++i) all.select(0, g.rows(i)).in_place() = g.values.select(0, i);
  return all;
}

/// The largest size in x.
template <class X>
float distance(const X& x) {
  return max(abs(x)).item();
}

}  // namespace

TEST_CASE("the gradient of a row-sparse table has the rows that were looked up", "[rows]") {
  const tables t;
  t.pass({7, 39, 7, 0});
  const auto [numbers, values] = row_grad(t.sparse);
  CHECK(same_bits(numbers, ids{0, 7, 39}));
  CHECK(values.shape() == extents<2>{{3, columns}});
  CHECK(same_bits(filled(row_grad(t.sparse)), t.dense.grad()));
  t.pass({1, 7});  // passes add up
  CHECK(same_bits(row_grad(t.sparse).rows, ids{0, 1, 7, 39}));
  CHECK(same_bits(filled(row_grad(t.sparse)), t.dense.grad()));
  t.pass(ids(empty<std::int64_t>({0})));
  CHECK(row_grad(t.sparse).rows.numel() == 4);
  CHECK(same_bits(t.sparse.grad(), t.dense.grad()));  // from here on it is dense
  CHECK_THROWS_WITH(row_grad(t.sparse), Contains("row_grad: the gradient of the table is dense"));
  t.pass({1, 1, 2});
  CHECK(same_bits(t.sparse.grad(), t.dense.grad()));
  t.sparse.zero_grad();
  CHECK_FALSE(t.sparse.has_grad());
  CHECK_THROWS_WITH(row_grad(t.sparse), Contains("row_grad: the table has no gradient"));
  CHECK_THROWS_WITH(t.sparse.grad(), Contains("has no gradient"));
  CHECK_THROWS_WITH(row_sparse(t.start.transpose()), Contains("shape (19, 40)") && Contains("contiguous()"));
}

TEST_CASE("what else adds to the gradient of a row-sparse table makes it dense", "[rows]") {
  generator gen(3);
  const auto x = randn<float>(gen, {5, rows});
  const ids list{3, 3, 9};
  const auto check = [&](const auto& loss) {
    const tables t;
    t.both([&](const auto& table) { loss(table).backward(); });
    CHECK(distance(t.sparse.grad() - t.dense.grad()) < 1e-5f);
    t.both([&](const auto& table) { sum(square(embedding(list, table))).backward(); });  // rows to a dense one
    CHECK(distance(t.sparse.grad() - t.dense.grad()) < 1e-5f);
  };
  // A tied layer, before and behind the lookup; two lookups; an op on a view; the table as it is.
  check([&](const auto& w) { return eval(sum(square(embedding(list, w))) + sum(square(matmul(x, w)))); });
  check([&](const auto& w) { return eval(sum(square(matmul(x, w))) + sum(square(embedding(list, w)))); });
  check([&](const auto& w) { return eval(sum(square(embedding(list, w))) + sum(tanh(embedding(list + 1, w)))); });
  check([&](const auto& w) { return eval(sum(square(embedding(list, w))) + sum(square(w.slice(0, 2, 5)))); });
  check([&](const auto& w) { return eval(sum(square(w)) + sum(embedding(list, w))); });
  // Rows first, a dense gradient in a later pass.
  const tables t;
  t.pass(list);
  t.both([&](const auto& w) { sum(square(w)).backward(); });
  CHECK(distance(t.sparse.grad() - t.dense.grad()) < 1e-5f);
}

TEST_CASE("a pass that fails leaves the rows of earlier ones", "[rows]") {
  const tables t;
  t.pass({4, 5});
  const auto before = row_grad(t.sparse);
  variable first = embedding(ids{6, 4}, t.sparse);
  const auto fail = with_gradient([](const auto& x) { return eval(x * 2); },
                                  [](const auto&) -> tensor<float, 2> { throw value_error("no"); }, "failing");
  const variable y = fail(embedding(ids{8}, t.sparse));
  const variable both = sum(first) + sum(y);
  CHECK_THROWS_AS(both.backward(), value_error);
  CHECK(same_bits(row_grad(t.sparse).rows, before.rows));
  CHECK(same_bits(row_grad(t.sparse).values, before.values));
}

TEST_CASE("a listener hears of a row-sparse table", "[rows]") {
  const tables t;
  gradient_listener listener;
  index_t heard = 0;
  listener.add(t.sparse, [&] { heard = row_grad(t.sparse).rows.numel(); });
  sum(embedding(ids{1, 2, 1}, t.sparse)).backward(listener);
  CHECK(heard == 2);
}

TEST_CASE("rows are summed in the same bits for any number of threads", "[rows]") {
  generator gen(2);
  const index_t n = 20000;
  ids list = randint<std::int64_t>(gen, 0, 2 * rows, {n});
  list = where(list < rows, list, zeros<std::int64_t>({n}) + 7);  // half of the places are of one id
  const auto seed = randn<float>(gen, {n, columns});
  const int before = num_threads();
  const auto of = [&](int threads) {
    set_num_threads(threads);
    const tables t;
    variable y = embedding(list, t.sparse), z = embedding(list, t.dense);
    y.backward(seed);
    z.backward(seed);
    CHECK(same_bits(filled(row_grad(t.sparse)), t.dense.grad()));
    return row_grad(t.sparse).values;
  };
  const auto alone = of(1);
  CHECK(same_bits(of(2), alone));
  CHECK(same_bits(of(5), alone));
  set_num_threads(before);
}

TEMPLATE_TEST_CASE("sgd and adagrad step the rows of a table as they step all of it", "[rows]", optim::sgd,
                   optim::adagrad) {
  const tables t;
  TestType of_rows(t.sparse, {.lr = 0.3}), of_all(t.dense, {.lr = 0.3});
  for (const ids& list : {ids{3, 3, 8}, ids{0}, ids{39, 8}, ids{8, 1, 8}}) {
    t.both([](const auto& w) { w.zero_grad(); });
    t.pass(list);
    of_rows.step(0.5);
    of_all.step(0.5);
    row_grad(t.sparse);  // is still there
    CHECK(same_bits(t.sparse.value(), t.dense.value()));
  }
  CHECK(same_bits(t.sparse.value().select(0, 2), t.start.select(0, 2)));
  t.both([](const auto& w) { w.zero_grad(); });
  t.pass({2, 2});
  t.sparse.grad();  // dense
  of_rows.step();
  of_all.step();
  CHECK(same_bits(t.sparse.value(), t.dense.value()));
}

TEST_CASE("gradients that are held by rows are clipped and scaled as others", "[rows]") {
  const tables t;
  t.pass({3, 3, 8});
  const double norm = optim::clip_grad_norm(t.dense, 1.0);
  CHECK(optim::clip_grad_norm(t.sparse, 1.0) == Approx(norm).epsilon(1e-6));
  CHECK(distance(filled(row_grad(t.sparse)) - t.dense.grad()) < 1e-7f);
  t.both([](const auto& w) { optim::clip_grad_value(w, 0.1); });
  CHECK(distance(filled(row_grad(t.sparse)) - t.dense.grad()) < 1e-7f);
  optim::sgd optimizer(t.sparse, {.lr = 0.1});
  CHECK(optimizer.scale_gradients(3));
  CHECK(distance(filled(row_grad(t.sparse)) - 3 * t.dense.grad()) < 1e-6f);
  row_grad(t.sparse).values.in_place() = std::numeric_limits<float>::infinity();
  CHECK_FALSE(optimizer.scale_gradients(1));
}

TEST_CASE("optimizers that change every row refuse a row-sparse table", "[rows]") {
  const tables t;
  const auto words = nn::embedding<>::from_pretrained(t.start, false, {.sparse = true});
  CHECK_THROWS_WITH(optim::adam(words), Contains("optimizer: the gradient of weight (40, 19) is held by rows") &&
                                            Contains("sgd and adagrad"));
  CHECK_THROWS_WITH(optim::rmsprop(t.sparse), Contains("held by rows"));
  CHECK_THROWS_WITH(optim::sgd(t.sparse, {.momentum = 0.9}), Contains("sgd: momentum and weight_decay"));
  CHECK_THROWS_WITH(optim::sgd(t.sparse, {.weight_decay = 0.1}), Contains("set both to 0"));
  CHECK_THROWS_WITH(optim::adagrad(t.sparse, {.weight_decay = 0.1}), Contains("adagrad: weight_decay"));
  optim::sgd others(t.dense, {.lr = 0.1, .momentum = 0.9});
  CHECK_THROWS_AS(others.add(t.sparse), value_error);
  CHECK(others.size() == 1);
}

TEST_CASE("embeddings whose gradient is sparse stay so on another device", "[rows]") {
  generator gen(5);
  const auto check = [](const auto& layer, const auto& list) {
    sum(layer(list)).backward();
    CHECK(row_grad(layer.weight).rows.numel() == 2);
  };
  const ids list{3, 3, 8};
  const nn::embedding words(rows, columns, gen, {.sparse = true});
  check(words, list);
  check(words.to<numa<1>>(), list.to<numa<1>>());
  const nn::embedding_bag bags(rows, columns, gen, {.mode = bag_mode::max, .sparse = true});
  const auto pair = list.slice(0, 1, 3).reshape({1, 2});
  check(bags, pair);
  check(bags.to<numa<1>>(), pair.to<numa<1>>());
  const tensor y = infer(words)(list);
  CHECK(y.extent(1) == columns);
}
