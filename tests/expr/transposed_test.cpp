// tests/expr/transposed_test.cpp: passes over operands that lie across the loop, which go through them in tiles.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <vector>

using namespace sinter;

namespace {

// Larger, smaller and not multiples of a tile, which is 32 rows of 256 elements.
const std::vector<extents<2>> sizes{{{16, 16}},  {{15, 300}}, {{300, 15}}, {{17, 33}},  {{32, 256}},
                                    {{33, 257}}, {{64, 513}}, {{257, 40}}, {{700, 300}}};

template <class T>
tensor<T, 2> numbered(index_t rows, index_t columns) {
  auto t = empty<T>({rows, columns});
  for (index_t i = 0; i < t.numel(); ++i) t.data()[i] = static_cast<T>(static_cast<float>((i * 7 + i / columns) % 113));
  return t;
}

/// Does f(i, j) say what y holds at (i, j), for all of them?
template <class Y, class F>
bool holds(const Y& y, const F& f) {
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t j = 0; j < y.extent(1); ++j)
      if (!(y(i, j) == static_cast<element_of<Y>>(f(i, j)))) return false;
  return true;
}

}  // namespace

TEMPLATE_TEST_CASE("operands that lie across are read and written where they stand", "[transposed]", float, double,
                   std::uint8_t, std::int16_t) {
  using T = TestType;
  for (const auto& size : sizes)
    for (const int threads : {1, 3}) {
      set_num_threads(threads);
      const index_t m = size[0], n = size[1];
      CAPTURE(m, n, threads);
      const auto a = numbered<T>(m, n), b = numbered<T>(n, m);
      CHECK(holds(b.transpose().clone(), [&](index_t i, index_t j) { return b(j, i); }));
      CHECK(holds(eval(a + b.transpose()), [&](index_t i, index_t j) { return a(i, j) + b(j, i); }));
      auto y = numbered<T>(n, m);
      y.transpose() = a + T(1);
      CHECK(holds(y, [&](index_t i, index_t j) { return a(j, i) + 1; }));
      y.transpose() += b.transpose() - a;
      CHECK(holds(y, [&](index_t i, index_t j) { return b(i, j) + 1; }));
      const auto column = numbered<T>(m, 1), row = numbered<T>(1, n);
      CHECK(holds(eval(b.transpose() * column + row),
                  [&](index_t i, index_t j) { return b(j, i) * column(i, 0) + row(0, j); }));
    }
  set_num_threads(2);
}

TEST_CASE("parts of transposed tensors leave the rest alone", "[transposed]") {
  const auto a = numbered<float>(90, 410);
  auto y = full<float>({410, 90}, -1.f);
  y.slice(0, 3, 403).slice(1, 5, 77).transpose() = a.slice(0, 2, 74).slice(1, 9, 409) * 2;
  CHECK(
      holds(y, [&](index_t i, index_t j) { return i >= 3 && i < 403 && j >= 5 && j < 77 ? a(j - 3, i + 6) * 2 : -1; }));
}

TEST_CASE("several results in one pass, some of them across", "[transposed]") {
  const auto a = numbered<float>(130, 270), b = numbered<float>(270, 130);
  auto p = empty<float>({130, 270}), q = full<float>({270, 130}, 3.f);
  fuse(p = a - b.transpose(), q.transpose() += a * 2);
  CHECK(holds(p, [&](index_t i, index_t j) { return a(i, j) - b(j, i); }));
  CHECK(holds(q, [&](index_t i, index_t j) { return 3 + 2 * a(j, i); }));
}

TEST_CASE("images change between channels first and channels last", "[transposed]") {
  const auto x = numbered<float>(3 * 20, 17 * 19).reshape({3, 20, 17, 19});
  const tensor last = x.permute({0, 2, 3, 1}).clone();
  const tensor first = last.permute({0, 3, 1, 2}).clone();
  CHECK_FALSE(eval(any(first != x)).item());
  bool good = true;
  for (index_t n = 0; n < 3; ++n)
    for (index_t c = 0; c < 20; ++c)
      for (index_t h = 0; h < 17; ++h)
        for (index_t w = 0; w < 19; ++w) good = good && last(n, h, w, c) == x(n, c, h, w);
  CHECK(good);
}

TEST_CASE("gradients of operands that lie across", "[transposed]") {
  const variable a = numbered<double>(40, 300), b = numbered<double>(300, 40);
  const auto seed = numbered<double>(40, 300);
  variable(a * b.transpose() * b.transpose()).backward(seed);
  CHECK(holds(a.grad(), [&](index_t i, index_t j) { return seed(i, j) * b.value()(j, i) * b.value()(j, i); }));
  CHECK(holds(b.grad(), [&](index_t i, index_t j) { return seed(j, i) * a.value()(j, i) * 2 * b.value()(i, j); }));
}

TEST_CASE("rows along another axis than the last", "[transposed]") {
  const auto x = eval(cast<float>(numbered<double>(70, 300)) / 50.f);
  const tensor down = softmax(x, 0), along = softmax(x.transpose().clone(), 1);
  // Sums along a row are added in another order than those of rows side by side.
  CHECK(eval(max(abs(down - along.transpose()) / along.transpose())).item() < 1e-6f);
  CHECK(eval(max(abs(sum(down, 0) - 1.f))).item() < 1e-5f);
}
