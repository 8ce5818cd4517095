// tests/grad/statement_test.cpp: gradients of elementwise statements against central differences.
#include "differences.hpp"

using namespace sinter;
using differences::check;
using differences::random;

TEST_CASE("leaves broadcast along rows, columns, middle axes and everything get their sums", "[grad]") {
  std::mt19937 gen(1);
  struct sizes {
    index_t a, b, c;
    int probes;
  };
  for (const auto [a, b, c, probes] : {sizes{2, 3, 4, 99},
                                       {1, 1, 1, 9},
                                       {3, 1, 20, 20},
                                       {5, 70, 3, 9},
                                       {7, 5, 130, 9},
                                       {40, 41, 45, 3},
                                       {3, 300, 90, 3}}) {
    const auto full = random(gen, {a, b, c});
    const auto f = [](const auto& x, const auto& p, const auto& q) { return tanh(x * p) + q * q * p - x; };
    check(f, probes, full, random(gen, {c}), random(gen, {b, 1}));
    check(f, probes, full, random(gen, {a, 1, c}), random(gen, {a, 1, 1}));
    check(f, probes, full, random(gen, {1, 1, 1}), random(gen, extents<0>{}));
  }
}

TEST_CASE("two broadcast leaves alone span the result", "[grad]") {
  std::mt19937 gen(2);
  const auto outer = [](const auto& r, const auto& c) { return sin(r * c) + r / (c + 3); };
  check(outer, 20, random(gen, {5}), random(gen, {7, 1}));
  check(outer, 4, random(gen, {300}), random(gen, {290, 1}));
  check(outer, 4, random(gen, {1, 6, 1}), random(gen, {4, 1, 5}));
}

TEST_CASE("a leaf that appears several times adds up its parts", "[grad]") {
  std::mt19937 gen(3);
  for (const index_t n : {1, 5, 16, 40, 70001}) {
    check([](const auto& x) { return x * x + x * exp(x) - x; }, 12, random(gen, {n}));
    check([](const auto& x, const auto& y) { return x * y + y / (x + 2) + x * x * y; }, 12, random(gen, {n}),
          random(gen, {n}));
  }
  check([](const auto& x) { return (x * x + ones<double>({6, 1})) * x; }, 12, random(gen, {7}));
}

TEST_CASE("a leaf and its views in one statement split and add", "[grad]") {
  std::mt19937 gen(4);
  check([](const auto& x) { return x + x.transpose(); }, 20, random(gen, {4, 4}));
  check([](const auto& x) { return x * x.transpose() * x.flip(1); }, 20, random(gen, {5, 5}));
  check([](const auto& x) { return x.slice(0, 1, 9) * x.slice(0, 0, 8) - x.slice(0, 0, 8) * x.slice(0, 0, 8); }, 20,
        random(gen, {9}));
  check([](const auto& x) { return x * x[1] + x.select(1, 2).unsqueeze(1); }, 20, random(gen, {3, 4}));
  check([](const auto& x) { return x * x.transpose(); }, 3, random(gen, {300, 300}));
}

TEST_CASE("a broadcast variable gets the sum of the gradients of its copies", "[grad]") {
  const variable x = tensor<float, 1>{1, 2, 3};
  const variable y = x.reshape({3, 1}).broadcast_to({2, 3, 4});
  CHECK(y.shape() == extents<3>{2, 3, 4});
  CHECK((y(0, 1, 3) == 2 && y(1, 2, 0) == 3));
  sum(y * y).backward();
  CHECK((x.grad()(0) == 16 && x.grad()(1) == 32 && x.grad()(2) == 48));
  CHECK_THROWS_WITH(x.broadcast_to({3, 2}), Catch::Contains("(3,) does not broadcast to (3, 2)"));
  variable<double, 0, cpu, 2> s(full<double>(3));
  variable cube = sum(s.broadcast_to({2}) * square(s));  // 2 s^3
  sum(grad(cube, s)).backward();
  CHECK(s.grad().item() == 36);
}

TEST_CASE("views of variables hand their gradient to the elements they show", "[grad]") {
  std::mt19937 gen(5);
  const auto w = random(gen, {2, 3, 4});
  check([](const auto& x) { return exp(x.permute({2, 0, 1})); }, 24, w);
  check([](const auto& x) { return exp(x.slice(2, 0, 4, 2).reshape({12})) * 2; }, 24, w);
  check([](const auto& x) { return exp(x.transpose(0, 2).reshape({6, 4})); }, 24, w);
  check([](const auto& x) { return sin(x.slice(1, 2, 3).squeeze(1).unsqueeze(0)); }, 24, w);
  check([](const auto& x) { return x.flatten() * x.flip(0).flatten(); }, 24, w);
  check([](const auto& x) { return x.slice(0, 1, 1) * 3 + zeros<double>({1, 3, 4}); }, 24, w);
}

TEST_CASE("chains and diamonds of statements pass gradients on", "[grad]") {
  std::mt19937 gen(6);
  check(
      [](const auto& x, const auto& r) {
        const variable a = tanh(x * r);
        const variable b = a * a + x;
        const variable c = b * r - a;
        return b * c + a;
      },
      15, random(gen, {4, 5}), random(gen, {5}));
  check(
      [](const auto& x) {
        variable y = x * 1;
        for (int i = 0; i < 20; ++i) y = y * 0.9 + sin(y) * x;
        return y * 1;
      },
      15, random(gen, {6}));
}

TEST_CASE("where and comparisons route gradients to the branch taken", "[grad]") {
  std::mt19937 gen(7);
  check([](const auto& x, const auto& y) { return where(x > y, x * x, y * 3) + where(x * y > 0, x, 0); }, 20,
        random(gen, {17}), random(gen, {17}));
  check([](const auto& x, const auto& y) { return where(constant(x) > 0, x, y) * maximum(x, y); }, 20,
        random(gen, {4, 8}), random(gen, {8}));
}

TEST_CASE("casts between float and double pass gradients, others cut them", "[grad]") {
  const variable x = tensor<float, 1>{1, 2, 3};
  const variable y = cast<double>(x) * cast<double>(x) + cast<double>(cast<int>(x));
  y.backward(ones<double>({3}));
  for (int i = 0; i < 3; ++i) CHECK(x.grad()(i) == 2 * static_cast<float>(i + 1));
  const variable<double, 1> d = ones<double>({70001});
  const variable z = cast<float>(d) * x.slice(0, 1, 2);
  z.backward(ones<float>({70001}));
  CHECK(d.grad()(70000) == 2);
  CHECK(x.grad()(1) == Approx(4 + 70001));
  static_assert(!is_tracked_v<decltype(cast<int>(x))>);
  static_assert(!is_tracked_v<decltype(x > 1)>);
}

TEST_CASE("gradients of scalars and rows are accurate over many elements", "[grad]") {
  const index_t n = 4000000;
  const auto x = full<float>({n}, 0.1f);
  const variable s = ones<float>();
  const variable y = s * x;
  y.backward(ones<float>({n}));
  CHECK(s.grad().item() / (0.1f * static_cast<double>(n)) == Approx(1).epsilon(1e-5));
  const variable r = ones<float>({4});
  const variable z = r * x.reshape({n / 4, 4});
  z.backward(ones<float>({n / 4, 4}));
  CHECK(r.grad()(2) / (0.1f * static_cast<double>(n / 4)) == Approx(1).epsilon(3e-4));
  const variable t = ones<float>();
  const variable w = t * x.reshape({2000, 2000}).transpose() * full<float>({2000, 2000}, 1.f);
  w.backward(ones<float>({2000, 2000}));
  CHECK(t.grad().item() / (0.1f * static_cast<double>(n)) == Approx(1).epsilon(1e-5));
}

TEST_CASE("gradients over no elements are zero", "[grad]") {
  {
    const auto junk = full<double>({3}, 1e9);
  }
  const variable row = ones<double>({3});
  const variable x = zeros<double>({0, 3});
  const variable y = x * row;
  y.backward(zeros<double>({0, 3}));
  CHECK(row.grad()(0) == 0);
  CHECK(row.grad()(2) == 0);
  CHECK(x.grad().numel() == 0);
  const variable a = ones<double>({2, 0}), b = ones<double>({0, 3});
  const variable s = sum(matmul(a, b) * row);
  s.backward();
  CHECK(a.grad().numel() == 0);
  CHECK(row.grad()(1) == 0);
  const variable m = zeros<double>({0, 4});
  const variable w = ones<double>({4, 3});
  const variable z = sum(matmul(m, w));
  z.backward();
  CHECK(w.grad()(3, 2) == 0);
}

TEST_CASE("gradients are the same bits on one, two and three threads", "[grad][threads]") {
  std::mt19937 gen(8);
  const auto x = random(gen, {700, 300}), column = random(gen, {700, 1});
  const auto row = random(gen, {300});
  tensor<double, 2> gx, gc;
  tensor<double, 1> gr;
  for (int threads = 1; threads <= 3; ++threads) {
    set_num_threads(threads);
    const variable vx = x, vc = column;
    const variable vr = row;
    const variable y = sigmoid(vx * vr + vc) * tanh(vx.flip(0)) * vr;
    const variable loss = sum(y * y) + mean(log_softmax(y, 1)) + sum(matmul(y, vx.transpose()));
    loss.backward();
    if (threads == 1) gx = vx.grad(), gr = vr.grad(), gc = vc.grad();
    CHECK_FALSE(eval(any(vx.grad() != gx)).item());
    CHECK_FALSE(eval(any(vr.grad() != gr)).item());
    CHECK_FALSE(eval(any(vc.grad() != gc)).item());
  }
  set_num_threads(2);
}

TEST_CASE("the gradient of a narrow row over a million rows is summed in pieces", "[statement]") {
  variable<float, 1> row = zeros<float>({3});
  const auto x = full<float>({1000000, 3}, 0.1f);
  variable loss = sum((x + row) * 0.1f);
  loss.backward();
  // One by one, in float, the relative error would be about 1e-3.
  for (index_t i = 0; i < 3; ++i) CHECK(row.grad()(i) == Approx(1e5).epsilon(1e-5));
  variable<float, 1> bias = zeros<float>({4});
  variable(sum(full<float>({16384, 4}, 0.1f) * exp(bias))).backward();  // few enough rows for one task
  CHECK(bias.grad()(0) == Approx(1638.4).epsilon(1e-5));
}

TEST_CASE("an error of backward names the outermost op of its statement") {
  const variable a = ones<float>({3}), b = ones<float>({3});
  const variable product = a * b, sum = exp(a * b) + a;
  a.value().in_place() = zeros<float>({3});
  CHECK_THROWS_WITH(product.backward(ones<float>({3})), Catch::Contains("backward of 'multiply'"));
  CHECK_THROWS_WITH(sum.backward(ones<float>({3})), Catch::Contains("backward of 'add'"));
}
