// tests/grad/tape_test.cpp: what the tape keeps, frees, accumulates and refuses.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <memory>
#include <thread>

using namespace sinter;

TEST_CASE("gradients accumulate over backward calls until they are zeroed", "[tape]") {
  const variable x = full<float>({3}, 2.f);
  for (int k = 1; k <= 3; ++k) {
    const variable y = sum(x * x);
    y.backward();
    CHECK(x.grad()(0) == 4.f * static_cast<float>(k));
  }
  x.zero_grad();
  CHECK_FALSE(x.has_grad());
  CHECK_THROWS_AS(x.grad(), autograd_error);
  const variable y = sum(x);
  y.backward();
  CHECK(x.grad()(2) == 1);
}

TEST_CASE("backward of an expression is that of a variable of its value", "[tape]") {
  const variable x = tensor<float, 1>{1, 2, 3};
  const auto check = [&x](float a, float b, float c) {
    CHECK((x.grad()(0) == a && x.grad()(1) == b && x.grad()(2) == c));
    x.zero_grad();
  };
  sum(x * x).backward();
  check(2, 4, 6);
  const auto loss = sum(x * x) * 0.5f + 1;  // elementwise over a point
  loss.backward();
  CHECK(loss.item() == 8);
  check(1, 2, 3);
  let(sum(x), [](const auto& s) { return s * s; }).backward();
  check(12, 12, 12);
  const tensor<float, 1> seed{1, 10, 100};
  (x * x).backward(seed);
  check(2, 40, 600);
  exp(sum(x.reshape({3, 1}), 1) * 0.f).backward(seed, {.retain_graph = true});
  const auto twice = sum(x * 0.f);  // a point keeps its value, and with the option its graph
  twice.backward({.retain_graph = true});
  twice.backward();
  CHECK_THROWS_AS(twice.backward(), autograd_error);
  check(0, 0, 0);
  cumsum(x, 0).backward(seed);
  check(111, 110, 100);
  CHECK_THROWS_WITH((x * x).backward(), Catch::Contains("not a scalar"));
  CHECK_THROWS_WITH((x * x).backward(seed.slice(0, 0, 2)), Catch::Contains("seed of shape (2,)"));
  CHECK_FALSE(x.has_grad());
}

TEST_CASE("a graph can be run again only if it was retained", "[tape]") {
  const variable x = full<float>({3}, 2.f);
  const variable y = sum(exp(x) * x);
  y.backward({.retain_graph = true});
  const float once = x.grad()(1);
  y.backward();
  CHECK(x.grad()(1) == Approx(2 * once));
  CHECK_THROWS_AS(y.backward(), autograd_error);
  CHECK_THROWS_WITH(y.backward(), Catch::Contains("retain_graph"));
  CHECK(x.grad()(1) == Approx(2 * once));
}

TEST_CASE("a freed part of a graph is an error for later statements over it", "[tape]") {
  const variable x = ones<float>({3});
  const variable h = exp(x);
  const variable a = sum(h), b = sum(h * 2);
  a.backward();
  CHECK_THROWS_AS(b.backward(), autograd_error);
}

TEST_CASE("changing what backward needs is an error that names the statement", "[tape]") {
  const variable w = ones<float>({3}), v = ones<float>({3});
  {
    const variable y = w * v;
    v.value() += 1;
    CHECK_THROWS_WITH(y.backward(ones<float>({3})), Catch::Contains("multiply") && Catch::Contains("(3,)"));
  }
  {
    const variable y = exp(w);
    y.value() *= 2;
    CHECK_THROWS_WITH(y.backward(ones<float>({3})),
                      Catch::Contains("exp") && Catch::Contains("its result of shape (3,)"));
  }
  {
    const variable y = w + v;  // its derivative reads nothing
    v.value() += 1;
    CHECK_NOTHROW(y.backward(ones<float>({3})));
  }
  {
    const auto plain = ones<float>({3});
    const variable y = w * plain;
    plain.in_place() *= 2;
    CHECK_THROWS_AS(y.backward(ones<float>({3})), autograd_error);
  }
  {
    const auto base = ones<float>({6});
    const variable y = w * base.slice(0, 0, 3);
    base.slice(0, 3, 6) = 5;  // other elements of the same storage
    CHECK_THROWS_AS(y.backward(ones<float>({3})), autograd_error);
  }
}

TEST_CASE("changing what products, rows and losses keep is an error", "[tape]") {
  const variable w = ones<float>({2, 2}), v = ones<float>({2, 2});
  const auto seed = ones<float>({2, 2});
  {
    const variable y = matmul(w, v);
    v.value() += 1;
    CHECK_THROWS_WITH(y.backward(seed), Catch::Contains("matmul"));
  }
  {
    const variable y = softmax(w, 1);
    y.value() += 1;
    CHECK_THROWS_WITH(y.backward(seed), Catch::Contains("softmax"));
  }
  {
    const variable y = max(w, 1);
    w.value() += 1;
    CHECK_THROWS_AS(y.backward(ones<float>({2})), autograd_error);
  }
  {
    tensor<std::int64_t, 1> labels{0, 1};
    const variable y = cross_entropy(w * 2, labels);
    w.value() += 1;
    CHECK_THROWS_AS(y.backward(), autograd_error);  // the probabilities are recomputed from w
  }
}

TEST_CASE("labels that change between statement and backward are caught", "[tape]") {
  const variable w = ones<float>({2, 3});
  tensor<std::int64_t, 1> labels{0, 1};
  {
    const variable y = cross_entropy(w, labels);
    labels.in_place() = 2;
    CHECK_THROWS_AS(y.backward(), autograd_error);
  }
  {
    labels.in_place() = 0;
    const variable y = cross_entropy(w, labels);
    labels(1) = 1000;  // not seen as a write, but never used as an index
    CHECK_THROWS_AS(y.backward(), index_error);
    labels(1) = 0;
    const auto e = cross_entropy(w, labels);
    labels(0) = -5;
    CHECK_THROWS_AS(variable(e), index_error);
  }
}

TEST_CASE("no_grad, detach and constant cut the graph", "[tape]") {
  const variable x = full<float>({3}, 3.f);
  {
    const no_grad guard;
    const variable y = x * x;
    CHECK(y.is_leaf());
    CHECK_THROWS_AS(y.backward(ones<float>({3})), autograd_error);
    {
      const no_grad inner;
    }
    CHECK_THROWS_AS(variable(x * 2).backward(ones<float>({3})), autograd_error);
  }
  const variable y = x * x.detach() + constant(x) * 5;
  y.backward(ones<float>({3}));
  CHECK(x.grad()(0) == 3);
  static_assert(std::is_same_v<decltype(constant(x)), tensor<float, 1>>);
}

TEST_CASE("no_grad guards may end in any order", "[tape]") {
  variable w = tensor<float, 1>{1, 2};
  auto first = std::make_unique<no_grad>();
  auto second = std::make_unique<no_grad>();
  first.reset();
  CHECK(variable(w * 2.f).is_leaf());
  second.reset();
  CHECK_FALSE(variable(w * 2.f).is_leaf());
}

TEST_CASE("guards of precision may end in any order", "[tape]") {
  auto first = std::make_unique<use_matmul_precision>(matmul_precision::tf32);
  auto second = std::make_unique<use_matmul_precision>(matmul_precision::float32);
  first.reset();
  CHECK(use_matmul_precision::now() == matmul_precision::float32);
  first = std::make_unique<use_matmul_precision>(matmul_precision::tf32);
  second.reset();
  CHECK(use_matmul_precision::now() == matmul_precision::tf32);
  first.reset();
  CHECK(use_matmul_precision::now() == matmul_precision::float32);
}

TEST_CASE("a value made under no_grad is a constant in later statements", "[tape]") {
  const variable x = full<float>({40}, 3.f);
  const variable c = [&] {
    const no_grad guard;
    return variable<float, 1>(x * 2);
  }();
  const variable y = sum(x * c + c * c);
  y.backward();
  CHECK(x.grad()(39) == 6);
  CHECK_FALSE(c.has_grad());
  const variable z = matmul(c.reshape({4, 10}), x.reshape({10, 4}));
  z.backward(ones<float>({4, 4}));
  CHECK(x.grad()(0) == 6 + 24);
  const variable only = c * c;
  CHECK_THROWS_AS(only.backward(ones<float>({40})), autograd_error);
}

TEST_CASE("gradients of intermediate results are kept on request", "[tape]") {
  const variable x = full<float>({3}, 2.f);
  const variable h = x * x;
  const variable k = x * 3;
  h.retain_grad();
  const variable y = sum(h * h + k);
  y.backward();
  CHECK(h.grad()(0) == 8);
  CHECK_FALSE(k.has_grad());
  CHECK_THROWS_WITH(k.grad(), Catch::Contains("retain_grad"));
  CHECK(x.grad()(0) == 35);
}

TEST_CASE("a seed is needed for more than one element, fits the result, and is not changed", "[tape]") {
  const variable x = full<float>({3}, 2.f);
  const variable y = x * x;
  CHECK_THROWS_AS(y.backward(), shape_error);
  CHECK_THROWS_AS(y.backward(ones<float>({4})), shape_error);
  CHECK_THROWS_AS(y.backward(tensor<float, 1>()), shape_error);
  y.retain_grad();
  auto seed = ones<float>({3});
  y.backward(seed, {.retain_graph = true});
  y.backward(seed);
  CHECK(seed(0) == 1);
  CHECK(y.grad()(0) == 2);
  CHECK(x.grad()(0) == 8);  // each pass hands on its own seed only
  const variable leaf = ones<float>({3});
  leaf.backward(seed);
  leaf.backward(seed.flip(0));
  CHECK(seed(0) == 1);
  CHECK(leaf.grad()(0) == 2);
}

TEST_CASE("a backward that fails leaves nothing behind that a later one would count", "[tape]") {
  const variable x = full<float>({3}, 2.f), w = ones<float>({3});
  const variable h = exp(w);
  const variable first = sum(h);
  first.backward();  // frees what h needs
  w.zero_grad();
  const variable k = x * x;
  const variable y = k + h;
  CHECK_THROWS_AS(y.backward(ones<float>({3}), {.retain_graph = true}), autograd_error);
  CHECK_FALSE(y.has_grad());
  CHECK_FALSE(x.has_grad());
  const variable z = sum(k * 1);
  z.backward();
  CHECK(x.grad()(0) == 4);
}

TEST_CASE("a backward that fails leaves the gradients of earlier passes as they were, also of branches that were done",
          "[tape]") {
  const variable a = full<float>({3}, 2.f), w = ones<float>({3}), b = full<float>({3}, 4.f);
  const auto loss = [&] {
    const variable right = w * b, left = a * a;  // left comes last, so it is done first
    left.retain_grad();
    return std::pair(variable(sum(left * right)), left);
  };
  loss().first.backward();
  const auto again = loss();
  again.first.backward({.retain_graph = true});
  CHECK(again.second.grad()(0) == 4);
  b.value() = 5;  // the product of w and b has kept b
  const tensor<float, 1> of_a = a.grad(), of_b = b.grad();
  for (int attempt = 0; attempt < 2; ++attempt) {
    CHECK_THROWS_AS(again.first.backward({.retain_graph = true}), autograd_error);
    CHECK(again.second.grad()(0) == 4);
    CHECK(a.grad()(0) == 2 * 16);
    CHECK(w.grad()(0) == 2 * 16);
    CHECK(b.grad()(0) == 2 * 4);
  }
  CHECK(of_a.data() == a.grad().data());
  b.value() = 4;
  loss().first.backward();
  CHECK(a.grad()(2) == 3 * 16);
  CHECK(w.grad()(2) == 3 * 16);
  CHECK(of_b(2) == 3 * 4);
}

TEST_CASE("a default-constructed variable is an error where a value is needed", "[tape]") {
  const variable<float, 1> none;
  CHECK_FALSE(none.defined());
  CHECK_THROWS_AS(none * 2, shape_error);
  CHECK_THROWS_AS(none.backward(ones<float>({0})), autograd_error);
  CHECK_THROWS_AS(none.grad(), autograd_error);
  CHECK_THROWS_AS(none.item(), shape_error);
  none.zero_grad();
}

TEST_CASE("a graph of a hundred thousand statements runs and is freed without recursion", "[tape]") {
  const variable x = full<double>({2}, 1.);
  {
    variable y = x * 1;
    for (int i = 0; i < 100000; ++i) y = y + x * 1e-5;
    y.backward(ones<double>({2}));
    CHECK(x.grad()(0) == Approx(2));
  }
  {
    variable y = x * 1;
    for (int i = 0; i < 100000; ++i) y = y.flip(0);
  }  // never run backward
  SUCCEED();
}

TEST_CASE("backward frees what statements saved", "[tape]") {
  const variable x = ones<float>({100000});
  const variable y = sum(exp(x) * tanh(x));
  const auto before = memory().bytes_in_use;
  {
    const variable h = exp(x);
    const variable z = sum(h * h);
    z.backward();
  }
  x.zero_grad();
  CHECK(memory().bytes_in_use == before);
}

TEST_CASE("a graph built on one thread runs backward on another", "[tape][threads]") {
  const variable x = full<float>({70000}, 0.5f);
  variable<float, 0> loss;
  std::thread([&] { loss = sum(x * x * x); }).join();
  std::thread([&] { loss.backward(); }).join();
  CHECK(x.grad()(69999) == 0.75f);
  std::vector<std::thread> threads;
  std::vector<variable<float, 1>> own;
  for (int t = 0; t < 4; ++t) own.emplace_back(full<float>({40000}, static_cast<float>(t)));
  const auto shared = full<float>({40000}, 2.f);
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 5; ++i) {
        const variable y = sum(own[static_cast<std::size_t>(t)] * shared);
        y.backward();
      }
    });
  for (auto& t : threads) t.join();
  for (const auto& v : own) CHECK(v.grad()(123) == 10);
}

TEST_CASE("no_grad on one thread does not stop recording on another", "[tape][threads]") {
  const variable x = ones<float>({3});
  const no_grad guard;
  std::thread([&] {
    const variable y = sum(x * 2);
    y.backward();
  }).join();
  CHECK(x.grad()(0) == 2);
}

TEST_CASE("gradients flow through copies to other devices, in both directions", "[tape]") {
  const variable x = arange<float>(6).reshape({2, 3});
  const variable there = x.transpose().to<numa<1>>();
  static_assert(std::is_same_v<device_of<decltype(there)>, numa<1>>);
  const variable back =
      (there * there).shape() == extents<2>{{3, 2}} ? variable(there * there).to<cpu>() : variable<float, 2>();
  const variable loss = sum(back.transpose() * x);
  loss.backward();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) CHECK(x.grad()(i, j) == 3 * x(i, j) * x(i, j));
  const variable same = x.to<cpu>();
  CHECK(same.value().data() == x.value().data());
  x.zero_grad();
  const variable a = x.to<numa<0>>();
  const variable b = x.to<numa<1>>();
  const variable both = eval(sum(a * 2)).to<cpu>() + eval(sum(b * 3)).to<cpu>();
  both.backward();
  CHECK(x.grad()(1, 2) == 5);
}

TEST_CASE("joined variables get their parts of the gradient, also if one is joined twice", "[tape]") {
  const variable x = ones<float>({2, 3}), y = ones<float>({1, 3});
  const variable z = concat(0, x, y, x);
  z.retain_grad();
  z.backward(arange<float>(15).reshape({5, 3}), {.retain_graph = true});
  CHECK(x.grad()(0, 0) == 0 + 9);
  CHECK(x.grad()(1, 2) == 5 + 14);
  CHECK(y.grad()(0, 1) == 7);
  CHECK(z.grad()(0, 0) == 0);
  const variable s = stack(1, y.squeeze(0), y.squeeze(0));
  s.backward(arange<float>(6).reshape({3, 2}));
  CHECK(y.grad()(0, 1) == 7 + 2 + 3);
}

TEST_CASE("a pass that runs out of memory half-way leaves no gradient in the graph", "[tape]") {
  using D = numa<6>;
  const auto matrix = [](int k) {
    return eval(cos(arange<float, D>(64 * 64) * static_cast<float>(k))).reshape({64, 64});
  };
  const variable x(matrix(1)), v(matrix(2)), w(matrix(3));
  const variable y = matmul(tanh(matmul(x, v)), w);
  const auto seed = matrix(4);
  const auto forget = [&] {
    for (const auto* leaf : {&x, &v, &w}) leaf->zero_grad();
  };
  y.backward(seed, {.retain_graph = true});
  const auto dx = x.grad().clone(), dv = v.grad().clone(), dw = w.grad().clone();
  const auto holds = [&](float times) {
    return all(x.grad() == dx * times).item() && all(v.grad() == dv * times).item() &&
           all(w.grad() == dw * times).item();
  };
  int failures = 0;
  for (const bool again : {false, true})  // to gradients of an earlier pass
    for (std::size_t room = 0, done = 0; done == 0; room += 4096) {
      forget();
      if (again) y.backward(seed, {.retain_graph = true});
      empty_cache<D>();
      set_memory_limit<D>(memory<D>().bytes_in_use + room + 1);
      try {
        y.backward(seed, {.retain_graph = true});
        done = 1;
      } catch (const out_of_memory&) {
        ++failures;
      }
      set_memory_limit<D>(0);
      if (done != 0) continue;
      CHECK((again ? holds(1) : !x.has_grad() && !v.has_grad() && !w.has_grad()));
      y.backward(seed, {.retain_graph = true});
      CHECK(holds(again ? 2 : 1));
    }
  CHECK(failures >= 6);
}
