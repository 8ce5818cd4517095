// tests/expr/fuse_test.cpp: several assignments in one pass.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

using namespace sinter;

TEST_CASE("right sides of a fuse read the values from before it", "[fuse]") {
  for (const index_t n : {1, 16, 17, 64, 100000}) {
    auto a = arange<float>(static_cast<float>(n));
    tensor b = a * 10;
    fuse(a = b + 0, b = a + 0);
    CHECK(a(n - 1) == static_cast<float>(10 * (n - 1)));
    CHECK(b(n - 1) == static_cast<float>(n - 1));
    fuse(a += 1, b = a * 2);
    CHECK(b(n - 1) == static_cast<float>(20 * (n - 1)));
    CHECK(a(n - 1) == static_cast<float>(10 * (n - 1) + 1));
    auto c = a.clone();
    fuse(a = a + 1, b = a + b, c -= a);
    CHECK(c(n - 1) == 0);
    CHECK(a(n - 1) == static_cast<float>(10 * (n - 1) + 2));
  }
}

TEST_CASE("an optimizer step is one pass without new memory", "[fuse]") {
  const auto g = full<float>({1000}, 2.f);
  auto m = zeros<float>({1000});
  const auto w = ones<float>({1000});
  const void* before = m.data();
  const auto allocations = memory().allocations;
  fuse(m = 0.9f * m + 0.1f * g, w.in_place() -= 0.5f * (0.9f * m + 0.1f * g));
  CHECK(memory().allocations == allocations);
  CHECK(static_cast<const void*>(m.data()) == before);
  CHECK(m(999) == Approx(0.2f));
  CHECK(w(999) == Approx(0.9f));
}

TEST_CASE("a named target whose memory others see gets new memory", "[fuse]") {
  auto m = ones<float>({100});
  const auto other = m;
  tensor<float, 1> fresh;
  fuse(m = m * 3, fresh = m + 1);
  CHECK(other(5) == 1);
  CHECK(m(5) == 3);
  CHECK(fresh(5) == 2);
  auto view_base = ones<float>({200});
  auto v = view_base.slice(0, 0, 100);
  fuse(v = v + 1, m = m + 1);
  CHECK(view_base(0) == 1);
  CHECK(v(0) == 2);
}

TEST_CASE("right sides that read targets at other indices see the old values", "[fuse]") {
  const index_t n = 70;
  auto a = arange<float>(static_cast<float>(n * n)).reshape({n, n});
  auto b = zeros<float>({n, n});
  const auto start = a.clone();
  fuse(a = a + 1, b = a.transpose() * 1);
  CHECK(b(3, 5) == start(5, 3));
  CHECK(a(3, 5) == start(3, 5) + 1);
  a = start.clone();
  fuse(a.in_place() = a.transpose(), b.in_place() = a.flip(0));
  CHECK(a(3, 5) == start(5, 3));
  CHECK(b(3, 5) == start(n - 4, 5));
  a = start.clone();
  fuse(a.in_place() = a * 2, b.in_place() = a.slice(0, 0, 1) + b * 0);
  CHECK(b(3, 5) == start(0, 5));
}

TEST_CASE("where two assignments meet the same elements the later one stays", "[fuse]") {
  for (const index_t n : {3, 64, 1000}) {
    auto x = ones<float>({n});
    fuse(x += 1, x *= 5);
    CHECK(x(0) == 5);
    auto y = ones<float>({n});
    fuse(y = y + 1, y = y * 7);
    CHECK(y(n - 1) == 7);
    auto z = arange<float>(static_cast<float>(n));
    fuse(z.slice(0, 0, n - 1) = z.slice(0, 1, n), z.slice(0, 1, n) = z.slice(0, 0, n - 1));
    CHECK(z(0) == 1);
    CHECK(z(1) == 0);
    CHECK(z(n - 1) == static_cast<float>(n - 2));
  }
}

TEST_CASE("assignments of different shapes cannot share a pass and leave everything as it was", "[fuse]") {
  auto a = ones<float>({4});
  auto b = ones<float>({5});
  CHECK_THROWS_WITH(fuse(a = a * 2, b = b * 2),
                    Catch::Contains("fuse") && Catch::Contains("(4,)") && Catch::Contains("(5,)"));
  CHECK_THROWS_AS(fuse(a += 1, b += 1), shape_error);
  CHECK(a(0) == 1);
  CHECK(b(0) == 1);
}

TEST_CASE("an exception before a fuse leaves its targets as they were", "[fuse]") {
  auto a = ones<float>({4});
  auto b = ones<float>({4});
  CHECK_THROWS_AS(fuse(a = a * 2, b = b + zeros<float>({3})), shape_error);
  CHECK_THROWS_AS(fuse(a += 2, b.slice(0, 0, 3) += zeros<float>({4})), shape_error);
  CHECK(a(0) == 1);
  CHECK(b(3) == 1);
}

TEST_CASE("fuse takes points, strided views, scalars, integers, bool and empty tensors", "[fuse]") {
  auto x = arange<float>(12).reshape({3, 4});
  tensor<float, 2> centred, scaled;
  fuse(centred = x - mean(x, 1, keepdim), scaled = x / sum(x));
  CHECK(centred(2, 0) == -1.5f);
  CHECK(scaled(2, 3) == Approx(11.f / 66));
  auto wide = zeros<float>({3, 8});
  auto other = zeros<float>({3, 4});
  fuse(wide.slice(1, 0, 8, 2) = x, other = x * 2);
  CHECK(wide(2, 6) == 11);
  CHECK(wide(2, 7) == 0);
  CHECK(other(1, 1) == 10);
  tensor<bool, 2> big;
  tensor<int, 2> whole;
  fuse(big = x > 5, whole = cast<int>(x) * 3);
  CHECK(big(1, 2));
  CHECK_FALSE(big(1, 1));
  CHECK(whole(2, 3) == 33);
  tensor<float, 0> s = full<float>(2), t;
  fuse(s = s + 1, t = s * 2);
  CHECK(s.item() == 3);
  CHECK(t.item() == 4);
  tensor<float, 1> e = zeros<float>({0}), f;
  fuse(e += 1, f = e * 2);
  CHECK(f.numel() == 0);
  fuse(s += 5);
  CHECK(s.item() == 8);
}

TEST_CASE("a large fuse gives the same bits on any number of threads", "[fuse][threads]") {
  const index_t n = 300001;
  const auto g = arange<float>(static_cast<float>(n)) / 1000;
  tensor<float, 1> first_m, first_w;
  for (int threads = 1; threads <= 3; ++threads) {
    set_num_threads(threads);
    auto m = ones<float>({n});
    auto w = ones<float>({n});
    fuse(m = 0.9f * m + 0.1f * g, w -= tanh(m) * g);
    if (threads == 1) first_m = m, first_w = w;
    CHECK_FALSE(eval(any(m != first_m)).item());
    CHECK_FALSE(eval(any(w != first_w)).item());
  }
  set_num_threads(2);
}
