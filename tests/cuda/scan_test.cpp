// tests/cuda/scan_test.cpp: scans on simulated GPUs, against the CPU.
#include "compare.hpp"

using namespace sinter;
using compare::distance;
using compare::numbers;
using g0 = cuda<0>;

TEST_CASE("scans of rows and columns of any length", "[cuda]") {
  for (const index_t n : {0, 1, 7, 8, 9, 63, 64, 65, 2047, 2049, 5000}) {
    const auto x = numbers({3, n}, 1);
    CHECK(compare::values([](const auto& v) { return cumsum(v * 2, 1) + 1; }, x) < 1e-5);
    CHECK(compare::values([](const auto& v) { return logcumsumexp(v.transpose(), 0); }, x) < 1e-5);
    CHECK(compare::values([](const auto& v) { return cummin(v, 1).values; }, x) <= compare::rounding);
    CHECK(compare::values([](const auto& v) { return cummax(v.transpose(), 0).indices; }, numbers<int>({3, n}, 2)) <=
          compare::rounding);
  }
}

TEST_CASE("scans cut in pieces, along middle axes and of masks", "[cuda]") {
  const auto along_first = [](const auto& v) { return cumsum(v, 0); };
  CHECK(compare::values(along_first, numbers({40011}, 2)) < 1e-5);
  CHECK(compare::values(along_first, numbers({20011, 3}, 3)) < 1e-5);
  CHECK(compare::values([](const auto& v) { return cummax(v, 0).indices; }, numbers<int>({40011}, 4)) <=
        compare::rounding);
  CHECK(compare::values([](const auto& v) { return cumsum(v.permute({2, 0, 1}) > 0, 1); }, numbers({6, 70, 5}, 5)) <=
        compare::rounding);
  const auto before = launches<g0>();
  const tensor y = cumsum(numbers({300, 40}).to<g0>() * 2, 1);
  CHECK(launches<g0>() - before == 1);
}

TEST_CASE("NaN and equals in running extremes, as on the CPU", "[cuda]") {
  for (const index_t n : {5, 300, 20000}) {
    auto x = zeros<float>({n});
    const auto indices = [](const auto& v) { return cummax(v, 0).indices; };
    CHECK(compare::values(indices, x) <= compare::rounding);
    x(n / 2) = std::nanf("");
    x(n - 1) = std::nanf("");
    CHECK(compare::values(indices, x) <= compare::rounding);
  }
}

TEST_CASE("scans of what lies askew: unaligned, broadcast, cut anywhere", "[cuda]") {
  for (const index_t n : {3, 4, 8, 35, 64, 1027, 9001}) {
    const auto x = numbers({4, n + 1}, 1);
    const auto column = numbers({4, 1}, 2), row = numbers({1, n}, 3);
    const auto later = [n](const auto& v) { return v.slice(1, 1, n + 1); };
    CHECK(compare::values([&](const auto& v) { return cumsum(later(v), 1); }, x) < 1e-5);
    CHECK(compare::values([&](const auto& v, const auto& c, const auto& r) { return cumsum(later(v) * c + r, 1); }, x,
                          column, row) < 1e-4);
    CHECK(compare::values([&](const auto& v) { return cummax(later(v), 1).indices; }, x) <= compare::rounding);
    CHECK(compare::values([&](const auto& v) { return cumsum(eval(cast<double>(v)), 1); }, x) < 1e-12);
    CHECK(compare::values([&](const auto& v) { return cumsum(eval(cast<std::int8_t>(v)), 1); }, x) <=
          compare::rounding);
    const auto into_part = [n](const auto& v) {
      auto y = zeros_like(v);
      y.select(0, 1).slice(0, 1, n + 1) = cumsum(v.select(0, 2).slice(0, 0, n), 0);
      return y;
    };
    CHECK(compare::values(into_part, x) < 1e-5);
  }
}

TEST_CASE("scans to where no access of 16 bytes may begin", "[cuda]") {
  const auto x = numbers({3, 64}, 1), expected = eval(cumsum(x, 1));
  const auto there = x.to<g0>();
  for (const index_t from : {0, 1, 2, 4}) {
    const auto room = zeros<float, g0>({3 * 64 + 8});
    const auto part = room.slice(0, from, from + 3 * 64).reshape({3, 64});
    detail::kernels<ops::cumsum_op, g0>::forward(ops::cumsum_op(1), part, detail::no_epilogue<g0>, there);
    CHECK(distance(part, expected) < 1e-5);
    CHECK(eval(sum(abs(room.slice(0, from + 3 * 64, room.numel())))).item() == 0);
  }
}

TEST_CASE("products and gradients of scans", "[cuda]") {
  const auto x = numbers({9, 33}, 1);
  CHECK(compare::gradients([](const auto& v) { return eval(cumsum(tanh(v), 1)); }, x) < 1e-5);
  CHECK(compare::values([](const auto& v) { return cumprod(v, 0); }, x) < 1e-4);
  CHECK(compare::gradients([](const auto& v) { return cummax(v, 1).values; }, x) < 1e-5);
}
