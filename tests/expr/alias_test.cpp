// tests/expr/alias_test.cpp: statements whose right side reads what their left side writes.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <vector>

using namespace sinter;

namespace {

template <int R>
std::vector<int> values(const tensor<int, R>& t) {
  const auto dense = t.contiguous();
  return {dense.begin(), dense.end()};
}

/// Sizes on both sides of vectors, staging blocks and threads.
const std::vector<index_t> sizes = {1, 2, 15, 16, 17, 63, 512, 513, 40000, 70001};

}  // namespace

TEST_CASE("an update by a reversed or shifted view of itself reads the old values", "[alias]") {
  for (const index_t n : sizes) {
    auto a = arange<int>(static_cast<int>(n));
    a += a.flip(0);
    for (index_t i = 0; i < n; i += n / 17 + 1) REQUIRE(a(i) == n - 1);

    auto b = arange<int>(static_cast<int>(n));
    b.slice(0, 0, n - 1) = b.slice(0, 1, n);
    for (index_t i = 0; i + 1 < n; i += n / 17 + 1) REQUIRE(b(i) == i + 1);
    REQUIRE(b(n - 1) == n - 1);

    auto c = arange<int>(static_cast<int>(n));
    c.slice(0, 1, n) = c.slice(0, 0, n - 1) * 2 + 1;
    for (index_t i = 1; i < n; i += n / 17 + 1) REQUIRE(c(i) == 2 * (i - 1) + 1);

    auto d = arange<int>(static_cast<int>(n));
    d.in_place() = d.slice(0, n / 2, n / 2 + 1) + d;
    for (index_t i = 0; i < n; i += n / 17 + 1) REQUIRE(d(i) == n / 2 + i);
  }
}

TEST_CASE("a plus its transpose is symmetric, rebinding or in place", "[alias]") {
  for (const index_t n : {1, 3, 16, 17, 70, 300}) {
    const auto start = arange<int>(static_cast<int>(n * n)).reshape({n, n});
    auto a = start.clone();
    a = a + a.transpose();
    auto b = start.clone();
    b += b.transpose();
    auto c = start.clone();
    c.transpose() += c;
    auto d = start.clone();
    d.in_place() = d.transpose();
    for (index_t i = 0; i < n; i += n / 7 + 1)
      for (index_t j = 0; j < n; j += n / 7 + 1) {
        const int sum = start(i, j) + start(j, i);
        REQUIRE(a(i, j) == sum);
        REQUIRE(b(i, j) == sum);
        REQUIRE(c(i, j) == sum);
        REQUIRE(d(i, j) == start(j, i));
      }
  }
}

TEST_CASE("an update by a broadcast row or element of itself reads the old values", "[alias]") {
  auto a = arange<int>(600).reshape({30, 20});
  const auto start = a.clone();
  a += a[0];
  for (int i = 0; i < 30; ++i)
    for (int j = 0; j < 20; ++j) REQUIRE(a(i, j) == start(i, j) + start(0, j));
  a = start.clone();
  a -= a.slice(1, 3, 4);
  for (int i = 0; i < 30; ++i)
    for (int j = 0; j < 20; ++j) REQUIRE(a(i, j) == start(i, j) - start(i, 3));
  a = start.clone();
  a *= a.select(0, 29).select(0, 19);
  CHECK(a(0, 1) == 599);
  CHECK(a(29, 19) == 599 * 599);
}

TEST_CASE("an update by a reduction, product or softmax of itself reads the old values", "[alias]") {
  tensor<float, 2> a{{1, 2}, {3, 4}};
  a -= sum(a, 0);
  CHECK(a(0, 0) == -3);
  CHECK(a(1, 1) == -2);
  a = tensor<float, 2>{{1, 2}, {3, 4}};
  a.in_place() = matmul(a, a);
  CHECK(a(0, 0) == 7);
  CHECK(a(1, 1) == 22);
  a.in_place() = softmax(a, 0) + a.transpose();
  CHECK(a(0, 1) > 15);
}

TEST_CASE("an update at the same indices takes no temporary", "[alias]") {
  auto a = arange<float>(100000);
  const auto before = memory().allocations;
  a += a * 2;
  a.in_place() = a / (a + 1);
  a.slice(0, 5, 99) *= 3;
  CHECK(memory().allocations == before);
  a += a.flip(0);
  CHECK(memory().allocations == before + 1);
}

TEST_CASE("views of every kind can be written while their base is read elsewhere", "[alias]") {
  const auto start = arange<int>(5 * 6 * 7).reshape({5, 6, 7});
  auto a = start.clone();
  a.flip(2).slice(1, 0, 3) = a.slice(1, 3, 6) + 1;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 6; ++j)
      for (int k = 0; k < 7; ++k) REQUIRE(a(i, j, k) == (j < 3 ? start(i, j + 3, 6 - k) + 1 : start(i, j, k)));
  a = start.clone();
  a.slice(2, 0, 7, 3) = a.slice(2, 1, 7, 2);
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 6; ++j)
      for (int k = 0; k < 7; ++k) REQUIRE(a(i, j, k) == (k % 3 == 0 ? start(i, j, 2 * (k / 3) + 1) : start(i, j, k)));
}
