// tests/cpu/gemm_test.cpp: the matrix product against a plain loop, over sizes, strides, threads and special values.
#include "sinter/cpu/gemm.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "../catch.hpp"

using sinter::index_t;
using sinter::cpu_impl::gemm;
using sinter::cpu_impl::gemm_args;
using sinter::cpu_impl::thread_pool;
using sinter::cpu_impl::tile_epilogue;

namespace {

// Small numbers of a fixed sequence, with fractions that float products round.
template <class T>
struct sequence {
  std::uint32_t state = 1;
  T next() {
    state = state * 1664525u + 1013904223u;
    const auto n = static_cast<std::int32_t>(state >> 16) - 32768;
    if constexpr (std::is_integral_v<T>) return static_cast<T>(n);
    else return static_cast<T>(n) / T(16384);
  }
};

enum class layout { plain, transposed, padded, padded_transposed, spread, backward };
constexpr layout all_layouts[] = {layout::plain,  layout::transposed, layout::padded, layout::padded_transposed,
                                  layout::spread, layout::backward};

// A rows x columns matrix in a buffer whose gaps are NaN, so that a read outside the matrix shows.
template <class T>
struct matrix {
  std::vector<T> memory;
  index_t first = 0, row = 0, column = 0;

  matrix(index_t rows, index_t columns, layout kind, sequence<T>& values) {
    const index_t pad = kind == layout::padded || kind == layout::padded_transposed ? 5 : 0;
    const index_t step = kind == layout::spread ? 3 : 1;
    const bool across = kind == layout::transposed || kind == layout::padded_transposed;
    row = across ? step : columns * step + pad;
    column = across ? rows * step + pad : step;
    const index_t length = (across ? columns * column : rows * row) + 1;
    const T gap = std::numeric_limits<T>::has_quiet_NaN ? std::numeric_limits<T>::quiet_NaN() : T(77);
    memory.assign(static_cast<std::size_t>(length), gap);
    if (kind == layout::backward) {
      first = rows * columns - 1;
      row = -row;
      column = -column;
    }
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = 0; j < columns; ++j)
        memory[static_cast<std::size_t>(first + i * row + j * column)] = values.next();
  }
  const T* data() const { return memory.data() + first; }
  T at(index_t i, index_t j) const { return memory[static_cast<std::size_t>(first + i * row + j * column)]; }
};

struct visits {
  index_t columns;
  std::vector<int> count;
  static void count_tile(void* self, index_t r0, index_t r1, index_t c0, index_t c1) {
    auto& v = *static_cast<visits*>(self);
    for (index_t i = r0; i < r1; ++i)
      for (index_t j = c0; j < c1; ++j) ++v.count[static_cast<std::size_t>(i * v.columns + j)];
  }
  bool all_once() const {
    for (const int n : count)
      if (n != 1) return false;
    return true;
  }
};

template <class T>
std::vector<T> multiply(index_t m, index_t n, index_t k, const matrix<T>& a, const matrix<T>& b, bool accumulate,
                        thread_pool& pool, index_t gap = 0, visits* seen = nullptr) {
  std::vector<T> c(static_cast<std::size_t>(m * (n + gap)), T(3));
  const tile_epilogue after{seen == nullptr ? nullptr : &visits::count_tile, seen};
  gemm(
      gemm_args<T>{m, n, k, a.data(), a.row, a.column, b.data(), b.row, b.column, c.data(), n + gap, accumulate, after},
      pool);
  return c;
}

// Checks one product, at most a few thousand of its elements, and returns how many differ from the plain sum.
template <class T>
index_t wrong_elements(index_t m, index_t n, index_t k, layout la, layout lb, bool accumulate, thread_pool& pool) {
  sequence<T> values;
  const matrix<T> a(m, k, la, values), b(k, n, lb, values);
  constexpr index_t gap = 3;
  visits seen{n, std::vector<int>(static_cast<std::size_t>(m * n))};
  const std::vector<T> c = multiply(m, n, k, a, b, accumulate, pool, gap, &seen);
  index_t wrong = m * n > 0 && !seen.all_once();
  const index_t stride = m * n > 4000 ? m * n / 4000 * 2 + 1 : 1;
  for (index_t e = 0; e < m * n; e += stride) {
    const index_t i = e / n, j = e % n;
    const T got = c[static_cast<std::size_t>(i * (n + gap) + j)];
    if constexpr (std::is_integral_v<T>) {
      std::uint64_t sum = accumulate ? 3 : 0;
      for (index_t p = 0; p < k; ++p)
        sum += static_cast<std::uint64_t>(a.at(i, p)) * static_cast<std::uint64_t>(b.at(p, j));
      wrong += got != static_cast<T>(sum);
    } else {
      double sum = accumulate ? 3 : 0, size = 3;
      for (index_t p = 0; p < k; ++p) {
        const double product = static_cast<double>(a.at(i, p)) * static_cast<double>(b.at(p, j));
        sum += product;
        size += std::abs(product);
      }
      const double bound =
          size * static_cast<double>(std::numeric_limits<T>::epsilon()) * (4 + 0.02 * static_cast<double>(k));
      wrong += !(std::abs(static_cast<double>(got) - sum) <= bound);
    }
  }
  for (index_t i = 0; i < m; ++i)
    for (index_t j = n; j < n + gap; ++j) wrong += c[static_cast<std::size_t>(i * (n + gap) + j)] != T(3);
  return wrong;
}

constexpr index_t awkward[] = {0, 1, 2, 15, 16, 17, 31, 33, 63, 65, 127, 129, 300};

}  // namespace

TEMPLATE_TEST_CASE("gemm equals the plain sum for awkward sizes", "[gemm]", float, double) {
  thread_pool pool(2);
  for (const index_t m : awkward)
    for (const index_t n : awkward)
      for (const index_t k : awkward) {
        // The layouts change with the sizes, so that all pairs meet small and large ones.
        const layout la = all_layouts[(m + n) % 2], lb = all_layouts[(n + k) % 2];
        INFO("m " << m << ", n " << n << ", k " << k);
        REQUIRE(wrong_elements<TestType>(m, n, k, la, lb, (m + k) % 2 == 1, pool) == 0);
      }
}

TEMPLATE_TEST_CASE("gemm takes operands with any strides", "[gemm]", float, double, std::int32_t, std::int64_t) {
  thread_pool pool(2);
  const index_t sizes[][3] = {{17, 33, 65}, {129, 65, 70}, {5, 300, 127}, {300, 9, 90},
                              {31, 2, 15},  {7, 41, 200},  {42, 3, 300}};
  for (const auto& s : sizes)
    for (const layout la : all_layouts)
      for (const layout lb : all_layouts)
        for (const bool accumulate : {false, true}) {
          INFO("m " << s[0] << ", n " << s[1] << ", k " << s[2] << ", layouts " << int(la) << " " << int(lb));
          REQUIRE(wrong_elements<TestType>(s[0], s[1], s[2], la, lb, accumulate, pool) == 0);
        }
}

TEMPLATE_TEST_CASE("gemm crosses every blocking boundary", "[gemm]", float, double) {
  thread_pool pool(3);
  const index_t sizes[][3] = {{30, 600, 1100}, {700, 40, 4500}, {3, 5, 9000},   {1100, 70, 4100},
                              {257, 20, 2100}, {500, 810, 450}, {150, 290, 800}};
  for (const auto& s : sizes)
    for (const layout la : {layout::plain, layout::transposed})
      for (const layout lb : {layout::plain, layout::transposed}) {
        INFO("m " << s[0] << ", n " << s[1] << ", k " << s[2] << ", layouts " << int(la) << " " << int(lb));
        REQUIRE(wrong_elements<TestType>(s[0], s[1], s[2], la, lb, false, pool) == 0);
      }
}

TEMPLATE_TEST_CASE("gemm gives the same bits on any number of threads", "[gemm]", float, double) {
  const index_t sizes[][3] = {{129, 300, 600}, {300, 10, 700}, {40, 600, 900},  {600, 33, 1300},
                              {3, 600, 900},   {700, 7, 600},  {450, 700, 800}, {140, 60, 4000}};
  for (const auto& s : sizes)
    for (const layout la : {layout::plain, layout::transposed})
      for (const layout lb : {layout::plain, layout::transposed}) {
        sequence<TestType> values;
        const matrix<TestType> a(s[0], s[2], la, values), b(s[2], s[1], lb, values);
        thread_pool one(1), two(2), three(3);
        const auto expected = multiply(s[0], s[1], s[2], a, b, false, one);
        for (thread_pool* pool : {&two, &three}) {
          const auto got = multiply(s[0], s[1], s[2], a, b, false, *pool);
          REQUIRE(std::memcmp(got.data(), expected.data(), got.size() * sizeof(TestType)) == 0);
        }
      }
}

TEMPLATE_TEST_CASE("gemm with k = 0 clears or keeps C, and calls the epilogue", "[gemm]", float, double, std::int32_t) {
  thread_pool pool(2);
  for (const bool accumulate : {false, true})
    REQUIRE(wrong_elements<TestType>(40, 50, 0, layout::plain, layout::plain, accumulate, pool) == 0);
}

TEST_CASE("gemm with no rows or no columns calls no epilogue", "[gemm]") {
  thread_pool pool(2);
  int calls = 0;
  const auto count = [](void* context, index_t, index_t, index_t, index_t) { ++*static_cast<int*>(context); };
  gemm(gemm_args<float>{0, 5, 5, nullptr, 5, 1, nullptr, 5, 1, nullptr, 5, false, {count, &calls}}, pool);
  gemm(gemm_args<float>{5, 0, 5, nullptr, 5, 1, nullptr, 5, 1, nullptr, 5, false, {count, &calls}}, pool);
  REQUIRE(calls == 0);
}

TEMPLATE_TEST_CASE("gemm lets NaN and infinity through, also against zeros", "[gemm]", float, double) {
  thread_pool pool(2);
  constexpr TestType infinity = std::numeric_limits<TestType>::infinity();
  for (const TestType special : {std::numeric_limits<TestType>::quiet_NaN(), infinity, -infinity})
    for (const layout lb : {layout::plain, layout::transposed})
      for (const index_t m : {3, 40, 300}) {
        const index_t n = 45, k = 130;
        sequence<TestType> values;
        matrix<TestType> a(m, k, layout::plain, values), b(k, n, lb, values);
        a.memory.assign(a.memory.size(), TestType(0));
        b.memory[static_cast<std::size_t>(129 * b.row + 44 * b.column)] = special;
        a.memory[static_cast<std::size_t>(2 * a.row + 64)] = special;
        const auto c = multiply(m, n, k, a, b, false, pool);
        for (index_t i = 0; i < m; ++i)
          for (index_t j = 0; j < n; ++j) {
            const TestType got = c[static_cast<std::size_t>(i * n + j)];
            const TestType factor = b.at(64, j);
            if (j == 44) REQUIRE(std::isnan(got));
            else if (i != 2) REQUIRE(got == TestType(0));
            else if (std::isnan(special) || factor == TestType(0)) REQUIRE(std::isnan(got));
            else REQUIRE(got == special * factor);
          }
      }
}

TEMPLATE_TEST_CASE("gemm of integers wraps", "[gemm]", std::int8_t, std::int32_t, std::int64_t) {
  thread_pool pool(1);
  const TestType most = std::numeric_limits<TestType>::max();
  const TestType a[] = {most, most}, b[] = {most, most};
  TestType c[] = {0};
  gemm(gemm_args<TestType>{1, 1, 2, a, 2, 1, b, 1, 1, c, 1, false, {}}, pool);
  REQUIRE(c[0] == TestType(2));
}

TEST_CASE("gemm hands the epilogue finished elements", "[gemm]") {
  struct doubling {
    float* c;
    index_t ldc;
  };
  thread_pool pool(3);
  for (const index_t m : {20, 130, 500}) {
    const index_t n = 210, k = 1100;
    for (const layout lb : {layout::plain, layout::transposed}) {
      sequence<float> values;
      const matrix<float> a(m, k, layout::plain, values), b(k, n, lb, values);
      const auto expected = multiply(m, n, k, a, b, false, pool);
      std::vector<float> c(static_cast<std::size_t>(m * n), 1e30f);
      doubling context{c.data(), n};
      const auto double_tile = [](void* d, index_t r0, index_t r1, index_t c0, index_t c1) {
        const auto& to = *static_cast<doubling*>(d);
        for (index_t i = r0; i < r1; ++i)
          for (index_t j = c0; j < c1; ++j) to.c[i * to.ldc + j] *= 2;
      };
      const tile_epilogue after{double_tile, &context};
      gemm(gemm_args<float>{m, n, k, a.data(), a.row, a.column, b.data(), b.row, b.column, c.data(), n, false, after},
           pool);
      index_t wrong = 0;
      for (std::size_t i = 0; i < c.size(); ++i) wrong += c[i] != 2 * expected[i];
      REQUIRE(wrong == 0);
    }
  }
}
