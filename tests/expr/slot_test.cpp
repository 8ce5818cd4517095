// tests/expr/slot_test.cpp: expressions as values: they own their operands, and a point used twice is computed once.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

std::size_t allocations() { return memory().allocations; }

auto detached_expression() {
  const auto x = arange<float>(1000);
  const auto y = full<float>({1000}, 2.f);
  return relu(x * y - 3) + sum(x);
}

}  // namespace

TEST_CASE("an expression outlives its sources", "[slot]") {
  const auto e = detached_expression();
  {
    const auto junk = full<float>({1000}, 1e9f);
  }
  const tensor y = e;
  CHECK(y(999) == 999 * 2 - 3 + 499500.f);
  const tensor z = e;
  CHECK(z(0) == 499500.f);
}

TEST_CASE("an expression keeps the tensor that a name showed when it was built", "[slot]") {
  tensor<float, 1> a{1, 2};
  const auto e = a * 10;
  a = a + 100;
  CHECK(tensor(e)(0) == 10);
  auto b = a;
  const auto f = b + 1;
  b += 1;  // writes what f refers to
  CHECK(tensor(f)(0) == 103);
}

TEST_CASE("item() computes an expression of one element", "[slot]") {
  const tensor<double, 2> a{{1, 2}, {3, 4}};
  const auto total = sum(a);
  CHECK(total.item() == 10);
  CHECK(total.item() == 10);
  CHECK(mean(a).item() == 2.5);
  CHECK((total * 2 + 1).item() == 21);
  CHECK(all(a > 0).item());
  CHECK(sum(variable<double, 2>(a) * 2).item() == 20);
  CHECK(let(total, [](auto t) { return t * t; }).item() == 100);
  CHECK_THROWS_AS((a + 1).item(), shape_error);
  CHECK_THROWS_WITH((tensor<double, 0>().item()), Catch::Contains("empty"));
}

TEST_CASE("a product used several times runs once", "[slot]") {
  const auto a = ones<float>({64, 64});
  const auto h = matmul(a, a);
  const auto before = allocations();
  const tensor y = relu(h) + h * 2;  // the product, and the result
  CHECK(allocations() == before + 2);
  const tensor z = h - 1;  // the result only
  CHECK(allocations() == before + 3);
  CHECK(y(3, 3) == 192);
  CHECK(z(3, 3) == 63);
}

TEST_CASE("a reduction used in several statements runs once", "[slot]") {
  const auto a = arange<float>(5000).reshape({50, 100});
  const auto s = sum(a * a, 1, keepdim);
  const auto e = a / s;
  const auto before = allocations();
  const tensor p = e;
  CHECK(allocations() == before + 2);
  const tensor q = e + s;
  CHECK(allocations() == before + 3);
  CHECK(p(1, 1) == Approx(101. / s.result()(1, 0)));
}

TEST_CASE("elementwise work after a product runs in the memory of its result", "[slot]") {
  const auto x = ones<float>({32, 16}), w = ones<float>({8, 16});
  const auto b = ones<float>({8});
  auto before = allocations();
  const tensor y = relu(linear(x, w, b)) * 2;
  CHECK(allocations() == before + 1);
  CHECK(y(31, 7) == 34);
  before = allocations();
  const tensor m = mean(x * 2, 1) + 1;
  CHECK(allocations() == before + 1);
  CHECK(m(5) == 3);
}

TEST_CASE("a value taken from a point belongs to its holder", "[slot]") {
  const auto x = ones<float>({3, 2});
  const auto e = sum(x, 0);
  tensor a = e;
  a += 1;
  const tensor b = e;
  CHECK(b(0) == 3);
  auto c = eval(e);
  c *= 5;
  CHECK(tensor(e + 0)(1) == 3);
  const auto before = allocations();
  const tensor only = sum(x, 0);
  CHECK(allocations() == before + 1);
  CHECK(only(0) == 3);
}

TEST_CASE("a point first computed under no_grad still has gradients afterwards", "[slot]") {
  const variable w = ones<float>({2, 2});
  const auto h = matmul(w, w);
  {
    const no_grad guard;
    CHECK(eval(sum(h)).item() == 8);
  }
  const variable y = sum(h * 2);
  y.backward();
  CHECK(w.grad()(0, 0) == 8);
}

TEST_CASE("a point inside a point runs first and is shared as well", "[slot]") {
  const auto a = ones<float>({20, 20});
  const auto p = matmul(a, a);
  const auto before = allocations();
  const tensor y = softmax(p - max(p, 1, keepdim), 1) + p;
  CHECK(y(0, 0) == Approx(20.05));
  CHECK(allocations() <= before + 5);
  const tensor z = matmul(p, p);
  CHECK(z(0, 0) == 20 * 400);
}

TEST_CASE("the clone of a point is not the value that others ask for", "[slot]") {
  const auto p = matmul(ones<float>({2, 3}), ones<float>({3, 2}));
  const tensor copy = p.clone();
  copy.fill_(0);
  const tensor y = p;
  CHECK(y(1, 1) == 3);
  CHECK(p.slice(0, 0, 1).numel() == 2);
  const tensor x = ones<float>({1, 3, 2, 2}).to_memory_format(channels_last);
  CHECK((x + x).contiguous().is_contiguous());
}
