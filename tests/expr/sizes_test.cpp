// tests/expr/sizes_test.cpp: one pass over any size, rank, stride and element type, against element-by-element loops.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

using namespace sinter;

namespace {

/// Element of a tensor at a row-major position of a larger, broadcast shape.
template <class T, int R, int N>
T broadcast_at(const tensor<T, R>& t, const extents<N>& shape, index_t linear) {
  index_t offset = 0;
  for (int d = N - 1; d >= 0; --d) {
    const index_t i = linear % shape[d];
    linear /= shape[d];
    const int s = d - (N - R);
    if (s >= 0 && t.shape()[s] != 1) offset += i * t.strides()[s];
  }
  return t.data()[offset];
}

template <class T>
tensor<T, 1> counting(index_t n) {
  auto t = empty<T>({n});
  for (index_t i = 0; i < n; ++i) t.data()[i] = static_cast<T>(i % 101);
  return t;
}

}  // namespace

TEST_CASE("every tail and every size around the threading thresholds is computed once, and nothing beyond", "[sizes]") {
  for (const index_t n : {0,   1,   2,   15,    16,    17,    31,    32,    33,    63,     65,
                          127, 512, 513, 32767, 32768, 32769, 65535, 65536, 65537, 131073, 1000003}) {
    const auto a = counting<float>(n);
    auto buffer = full<float>({n + 64}, -7.f);
    buffer.slice(0, 32, n + 32) = a * 2 + 1;
    bool good = true;
    for (index_t i = 0; i < 32; ++i) good = good && buffer(i) == -7 && buffer(n + 32 + i) == -7;
    for (index_t i = 0; i < n; ++i) good = good && buffer.data()[i + 32] == a.data()[i] * 2 + 1;
    CHECK(good);
    auto b = counting<std::int16_t>(n);
    b += 1;
    good = true;
    for (index_t i = 0; i < n; ++i) good = good && b.data()[i] == i % 101 + 1;
    CHECK(good);
  }
}

TEST_CASE("results too large for the caches are what small ones are, in bits", "[sizes]") {
  const index_t n = (index_t{3} << 20) + 5;
  const auto a = counting<float>(n), b = counting<float>(n);
  const auto out = empty<float>({n});
  const auto s = full<float>(0.37f);
  const auto same = [&](index_t begin, const auto& statement) {  // the operands, in parts that stay in the caches
    const auto part = [&](const tensor<float, 1>& x, index_t i, index_t m) {
      return x.slice(0, begin + i, begin + i + m);
    };
    part(out, 0, n - 1) = statement(part(a, 0, n - 1), part(b, 0, n - 1));
    bool good = true;
    for (index_t i = 0; i < n - 1; i += 50000) {
      const index_t m = std::min<index_t>(50000, n - 1 - i);
      const auto small = eval(statement(part(a, i, m), part(b, i, m)));
      good = good && !any(small != part(out, i, m)).item();
    }
    return good;
  };
  for (const index_t begin : {0, 1}) {  // aligned vectors, and not
    CHECK(same(begin, [](const auto& x, const auto&) { return 1 / (x + 3); }));
    CHECK(same(begin, [](const auto& x, const auto& y) { return x / (y + 3); }));
    CHECK(same(begin, [&](const auto& x, const auto&) { return x * s + 1; }));
    CHECK(same(begin, [&](const auto& x, const auto& y) { return (x + s) * y; }));
    CHECK(same(begin, [](const auto& x, const auto& y) { return where(x > y, x, y) * (x + y); }));
  }
  const variable x = a, y = b;
  variable r = x / (y + 3);
  r.backward(ones_like(a));
  CHECK_FALSE(eval(any(x.grad() != 1 / (b + 3))).item());
  CHECK_FALSE(eval(any(abs(y.grad() * square(b + 3) + a) > 1e-3f)).item());
}

TEST_CASE("columns of every width are computed by rows or in blocks alike", "[sizes]") {
  for (const index_t rows : {1, 3, 700})
    for (const index_t columns : {1, 2, 15, 16, 17, 63, 64, 65, 100, 513}) {
      const auto big = counting<float>(rows * (columns + 5) * 2).reshape({2, rows, columns + 5});
      const auto a = big[0].slice(1, 2, columns + 2), b = big[1].slice(1, 5, columns + 5);
      const auto row = counting<float>(columns), column = counting<float>(rows);
      auto out = full<float>({rows + 1, columns + 3}, -1.f);
      out.slice(0, 0, rows).slice(1, 1, columns + 1) = a * b + row - column.unsqueeze(1);
      bool good = true;
      for (index_t i = 0; i <= rows; ++i)
        for (index_t j = 0; j < columns + 3; ++j) {
          const bool inside = i < rows && j >= 1 && j < columns + 1;
          const float expected = inside ? a(i, j - 1) * b(i, j - 1) + row(j - 1) - column(i) : -1;
          good = good && out(i, j) == expected;
        }
      CHECK(good);
    }
}

TEST_CASE("operands of rank 0 to 5 broadcast as NumPy does", "[sizes]") {
  std::mt19937 gen(5);
  for (int trial = 0; trial < 150; ++trial) {
    extents<5> shape;
    for (index_t& e : shape) e = 1 + static_cast<index_t>(gen() % 5);
    if (trial % 10 == 0) shape[static_cast<int>(gen() % 5)] = 0;
    const auto part = [&](auto rank) {
      extents<decltype(rank)::value> s;
      for (int d = 0; d < s.size(); ++d) s[d] = gen() % 3 == 0 ? 1 : shape[5 - s.size() + d];
      auto t = empty<int>(s);
      for (int& v : t) v = static_cast<int>(gen() % 1000);
      return t;
    };
    auto full_size = empty<int>(shape);
    for (int& v : full_size) v = static_cast<int>(gen() % 1000);
    const auto a = part(std::integral_constant<int, 5>{});
    const auto b = part(std::integral_constant<int, 3>{});
    const auto c = part(std::integral_constant<int, 1>{});
    const auto d = part(std::integral_constant<int, 0>{});
    const auto e = part(std::integral_constant<int, 4>{});
    const tensor y = (full_size + a) * b + where(c > 500, d, e);
    REQUIRE(y.shape() == shape);
    for (index_t i = 0; i < y.numel(); ++i) {
      const int expected = (full_size.data()[i] + broadcast_at(a, shape, i)) * broadcast_at(b, shape, i) +
                           (broadcast_at(c, shape, i) > 500 ? d.item() : broadcast_at(e, shape, i));
      REQUIRE(y.data()[i] == expected);
    }
  }
}

TEST_CASE("strided, reversed, transposed and broadcast operands meet in one statement", "[sizes]") {
  std::mt19937 gen(6);
  for (int trial = 0; trial < 60; ++trial) {
    const index_t n = 1 + static_cast<index_t>(gen() % 90), m = 1 + static_cast<index_t>(gen() % 90);
    const auto a = counting<double>(n * m).reshape({n, m});
    const auto b = counting<double>(n * m).reshape({m, n}).transpose();
    const auto c = counting<double>(3 * n * m).reshape({n, 3 * m}).slice(1, 1, 3 * m, 3);
    const auto d = a.flip(0).flip(1);
    const auto e = counting<double>(m).flip(0).broadcast_to({n, m});
    const tensor y = a - b * 2 + c * d - e;
    tensor z = zeros<double>({m, n});
    z.transpose().flip(1) = y * 1;
    for (index_t i = 0; i < n; ++i)
      for (index_t j = 0; j < m; ++j) {
        const double expected = a(i, j) - b(i, j) * 2 + c(i, j) * d(i, j) - e(i, j);
        REQUIRE(y(i, j) == expected);
        REQUIRE(z(m - 1 - j, i) == expected);
      }
  }
}

TEMPLATE_TEST_CASE("every element type is added, compared, chosen and cast", "[sizes]", float, double, std::int8_t,
                   std::int16_t, std::int32_t, std::int64_t, std::uint8_t) {
  using T = TestType;
  for (const index_t n : {1, 16, 40, 70000}) {
    auto a = empty<T>({n}), b = empty<T>({n});
    for (index_t i = 0; i < n; ++i) a.data()[i] = static_cast<T>(i % 60), b.data()[i] = static_cast<T>(i % 7);
    const tensor y = where(a > b * 2, a - b, T(1));
    const tensor<bool, 1> less = a < b;
    const tensor wide = cast<double>(y) * 0.5 + cast<double>(less);
    bool good = true;
    for (index_t i = 0; i < n; ++i) {
      const T p = static_cast<T>(i % 60), q = static_cast<T>(i % 7);
      const T expected = p > q * 2 ? static_cast<T>(p - q) : T(1);
      good = good && y.data()[i] == expected && less.data()[i] == (p < q) &&
             wide.data()[i] == static_cast<double>(expected) * 0.5 + (p < q ? 1 : 0);
    }
    CHECK(good);
  }
}

TEST_CASE("statements over tensors without elements give tensors without elements", "[sizes]") {
  const auto a = zeros<float>({3, 0, 2});
  CHECK(tensor(exp(a) + 1).shape() == a.shape());
  CHECK(tensor(a + ones<float>({1, 2})).shape() == a.shape());
  CHECK(tensor(where(a > 0, a, -a)).numel() == 0);
  CHECK(tensor(cast<int>(a)).numel() == 0);
  CHECK(tensor(sum(a, 1)).shape() == extents<2>{{3, 2}});
  CHECK(tensor(sum(a, 1))(2, 1) == 0);
  CHECK(tensor(sum(a, 0)).shape() == extents<2>{{0, 2}});
  CHECK(eval(sum(a)).item() == 0);
  CHECK(eval(prod(a)).item() == 1);
  CHECK(tensor(softmax(a, 1)).shape() == a.shape());
  CHECK(tensor(softmax(a, 0)).shape() == a.shape());
  CHECK(tensor(log_softmax(a, 2)).shape() == a.shape());
  CHECK_THROWS_AS(a + zeros<float>({3, 2, 2}), shape_error);
  CHECK(tensor(zeros<float>({1}) + zeros<float>({0})).numel() == 0);
  const tensor y = matmul(zeros<float>({2, 0}), zeros<float>({0, 3})) + 1;
  CHECK(y(1, 2) == 1);
  CHECK(tensor(matmul(zeros<float>({0, 4}), zeros<float>({4, 3}))).shape() == extents<2>{{0, 3}});
  CHECK(tensor(linear(zeros<float>({0, 4}), zeros<float>({3, 4}), zeros<float>({3}))).numel() == 0);
}

TEST_CASE("results that bypass the cache are right whatever their alignment", "[sizes]") {
  const auto x = counting<float>(1100 * 4099).reshape({1100, 4099});
  auto y = zeros<float>({1100, 4099});
  for (const index_t shift : {0, 1, 16}) {
    y.slice(1, shift, 4083 + shift) = x.slice(1, 0, 4083) * 2;
    CHECK(y(7, shift) == 2 * x(7, 0));
    CHECK(y(1099, 4082 + shift) == 2 * x(1099, 4082));
    CHECK(eval(any(y.slice(1, shift, 4083 + shift) != x.slice(1, 0, 4083) * 2)).item() == false);
  }
  const auto rows =
      x.flatten().slice(0, 0, 30 * 100003).reshape({30, 100003});  // longer than a task, and no whole vectors
  auto padded = zeros<float>({30, 100016});
  padded.slice(1, 0, 100003) = rows * 2;
  CHECK_FALSE(eval(any(padded.slice(1, 0, 100003) != rows * 2)).item());
  CHECK_FALSE(eval(any(padded.slice(1, 100003, 100016) != 0)).item());
  const auto flat = x.flatten();
  const tensor z = flat.slice(0, 1, flat.numel()) + 1;
  CHECK_FALSE(eval(any(z != flat.slice(0, 1, flat.numel()) + 1)).item());
}

TEST_CASE("several results that bypass the cache are what single ones are", "[sizes]") {
  for (const index_t columns : {4104, 4096 + 5}) {  // of which the first, but not the second, are whole vectors
    const index_t rows = 700;
    const auto a = counting<float>(rows * columns).reshape({rows, columns});
    const auto b = counting<float>(rows * (columns + 16)).reshape({rows, columns + 16}).slice(1, 16, columns + 16);
    const auto row = counting<float>(columns);
    tensor<float, 2> sum, product;
    tensor<half, 2> narrow;
    tensor<double, 2> wide;
    fuse(sum = a + row, product = a * b, narrow = cast<half>(b), wide = cast<double>(a) * 0.5);
    CHECK_FALSE(eval(any(sum != a + row)).item());
    CHECK_FALSE(eval(any(product != a * b)).item());
    CHECK_FALSE(eval(any(narrow != cast<half>(b))).item());
    CHECK_FALSE(eval(any(wide != cast<double>(a) * 0.5)).item());

    const variable x = a, y = b.clone();
    const variable bias = row;
    variable r = x * x * y + bias;  // x's gradient comes in two parts
    r.backward(ones_like(a), {.retain_graph = true});
    CHECK_FALSE(eval(any(abs(x.grad() - 2 * a * b) > 1e-2f)).item());
    CHECK_FALSE(eval(any(y.grad() != a * a)).item());
    CHECK_FALSE(eval(any(bias.grad() != static_cast<float>(rows))).item());
    r.backward(ones_like(a));  // on top
    CHECK_FALSE(eval(any(abs(x.grad() - 4 * a * b) > 2e-2f)).item());
    CHECK_FALSE(eval(any(y.grad() != 2 * a * a)).item());
  }
}

TEST_CASE("results at the same place of a page, next to it and apart are computed alike", "[sizes]") {
  const index_t n = (index_t{9} << 20) / 4;
  const auto a = counting<float>(n), b = a.flip(0).clone();
  for (const index_t gap : {0, 16, 32, 1008, 352}) {  // elements; a page has 1024
    auto memory = zeros<float>({3 * (n + gap)});
    const auto part = [&](index_t i) { return memory.slice(0, i * (n + gap), i * (n + gap) + n); };
    fuse(part(0) = a + b, part(1) = a * b, part(2) = a - b);
    CHECK_FALSE(eval(any(part(0) != a + b)).item());
    CHECK_FALSE(eval(any(part(1) != a * b)).item());
    CHECK_FALSE(eval(any(part(2) != a - b)).item());
  }
}

TEST_CASE("a large gradient of one leaf overwrites, and is added to what is there", "[sizes]") {
  const auto a = counting<float>((index_t{9} << 20) / 4);
  const variable x = a;
  variable r = 3 * x;
  const auto seed = a + 1;
  r.backward(seed, {.retain_graph = true});
  CHECK_FALSE(eval(any(x.grad() != 3 * seed)).item());
  r.backward(seed);
  CHECK_FALSE(eval(any(x.grad() != 6 * seed)).item());
}

TEST_CASE("an expression with many operands is still one pass", "[sizes]") {
  const auto a = counting<float>(100);
  const auto four = [&](auto e) { return e + a * a - a + a; };
  const tensor y = four(four(four(four(four(four(four(four(a))))))));
  for (int i = 0; i < 100; ++i) CHECK(y(i) == static_cast<float>(i + 8 * i * i));
  static_assert(kernel_count<decltype(four(four(a)))> == 1);
}

TEST_CASE("an integer literal out of the element type's range is an error", "[expr]") {
  const tensor<int, 1> k = {1, 2};
  const tensor<std::uint8_t, 1> u = {1, 2};
  CHECK_THROWS_AS(k + 10000000000, value_error);
  CHECK_THROWS_WITH(u + 256, Catch::Contains("256") && Catch::Contains("uint8"));
  CHECK_THROWS_AS(u + -1, value_error);
  CHECK(eval(u + 255)(0) == 0);
}
