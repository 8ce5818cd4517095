// tests/expr/let_test.cpp: let names a value that is computed once per element.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <optional>

using namespace sinter;

TEST_CASE("let gives the value of its body with the name replaced", "[let]") {
  for (const index_t n : {0, 1, 15, 16, 17, 1000, 70000}) {
    const tensor x = arange<float>(static_cast<float>(n)) / 2000;
    const tensor y = let(exp(x), [](auto t) { return t * t + t; });
    const tensor z = exp(x) * exp(x) + exp(x);  // where its last product may become one with the sum
    CHECK_FALSE(eval(any(!(abs(y - z) <= 3e-7f * z))).item());
  }
}

TEST_CASE("lets nest, capture, broadcast and keep their element type", "[let]") {
  const tensor<double, 1> x{1, 2, 3};
  const tensor<double, 2> c{{10}, {20}};
  const tensor y = let(x + 1, [&](auto t) { return let(t * c, [=](auto u) { return u * t + u; }) - x; });
  CHECK(y.shape() == extents<2>{{2, 3}});
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 3; ++j) {
      const double t = x(j) + 1, u = t * c(i, 0);
      CHECK(y(i, j) == u * t + u - x(j));
    }
  const tensor m = let(x > 1.5, [&](auto t) { return where(t, x, -x); });
  CHECK(m(0) == -1);
  CHECK(m(2) == 3);
  const tensor k = let(cast<int>(x), [](auto t) { return t * t; });
  CHECK(k(2) == 9);
  const tensor unused = let(x, [&](auto) { return c; });
  CHECK(unused.shape() == extents<2>{{2, 3}});
  CHECK_THROWS_AS(let(x, [&](auto t) { return t + zeros<double>({4}); }), shape_error);
  CHECK_THROWS_AS(let(tensor<double, 1>(), [](auto t) { return t; }), shape_error);
}

TEST_CASE("let takes reductions and products, as its value and in its body", "[let]") {
  const tensor<float, 2> a{{1, 2}, {3, 4}};
  const tensor p = let(matmul(a, a), [](auto t) { return t * t + t; });
  CHECK(p(0, 0) == 56);
  CHECK(p(1, 1) == 22 * 22 + 22);
  const tensor s = a * let(sum(a, 1, keepdim), [](auto t) { return t / (t + 1); });
  CHECK(s(1, 0) == Approx(3 * 7. / 8));
  const tensor b = let(a + 1, [&](auto t) { return t * sum(a) + t; });
  CHECK(b(0, 0) == 22);
  const tensor q = relu(let(a - 2, [&](auto t) { return matmul(a, a) * t + t; }));
  CHECK(q(1, 1) == 46);
  CHECK(q(0, 0) == 0);
}

TEST_CASE("gradients through let meet those of leaves used inside and outside it", "[let]") {
  for (const index_t n : {1, 15, 16, 64, 1000, 70001}) {
    const tensor start = arange<double>(static_cast<double>(n)) / static_cast<double>(n) + 0.5;
    const variable w = start, v = start * 2;
    {
      const auto junk = full<double>({n}, 1e9);
    }
    const variable y = let(exp(w), [&](auto t) { return t * w + let(t * v, [=](auto u) { return u * u * t; }); });
    y.backward(ones<double>({n}));
    for (index_t i = 0; i < n; i += n / 7 + 1) {
      const double x = start(i), e = std::exp(x);
      // e x + e^3 (2 x')^2 with v = 2 x' apart
      CHECK(w.grad()(i) == Approx(e * x + e + 3 * e * e * e * 4 * x * x));
      CHECK(v.grad()(i) == Approx(e * e * e * 2 * (2 * x)));
    }
  }
}

TEST_CASE("gradients through let reach broadcast leaves, products and constants", "[let]") {
  const auto plain = full<double>({3, 4}, 2.);
  const variable row = ones<double>({4});
  variable y = let(plain, [&](auto t) { return t * t * row; });
  y.backward(ones<double>({3, 4}));
  CHECK(row.grad()(3) == 12);
  const variable w = ones<double>({3, 3});
  const variable z = let(matmul(w, w), [&](auto t) { return t * t * w; });
  z.backward(ones<double>({3, 3}));
  // direct: 9; through w w, with 2 t w = 6 as its gradient: 6 * (3 + 3)
  CHECK(w.grad()(1, 2) == 45);
}

TEST_CASE("a name of let that was kept is refused by the next", "[let]") {
  const tensor<float, 1> x = {1, 2}, y = {10, 20};
  std::optional<detail::let_name<0, tensor<float, 1>>> kept;
  const tensor z = let(x, [&](auto t) {
    kept = t;
    return t * 2.f;
  });
  CHECK(z(1) == 4);
  const char* const refusal = "a name that another let() has given";
  CHECK_THROWS_WITH(let(y, [&](auto t) { return *kept + t; }), Catch::Contains(refusal));
  CHECK_THROWS_WITH(let(y, [&](auto) { return exp(*kept); }), Catch::Contains(refusal));
  CHECK_THROWS_WITH(let(x, [&](auto t) { return let(y, [&](auto u) { return t * u + *kept; }); }),
                    Catch::Contains(refusal));
}

TEST_CASE("the function given to let runs once, however deep lets nest in it", "[let]") {
  const tensor<float, 1> x = {1, 2}, y = {10, 20};
  int calls = 0;
  const tensor z = let(x, [&](auto t) {
    ++calls;
    return let(y, [&](auto u) { return let(t * u, [&](auto v) { return v - t + u; }); });
  });
  CHECK(calls == 1);
  CHECK(z(0) == 19);
  CHECK(z(1) == 58);
}
