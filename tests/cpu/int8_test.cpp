// tests/cpu/int8_test.cpp: weights of 8 bits, and the products of whole numbers.
#include "../catch.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <sinter/sinter.hpp>

#include "sinter/cpu/detail/int8_dots.hpp"

using namespace sinter;
namespace kernels = sinter::cpu_impl::detail;

namespace {

std::vector<float> numbers(index_t n, unsigned seed) {
  std::mt19937 bits(seed);
  std::normal_distribution<float> normal;
  std::vector<float> x(static_cast<std::size_t>(n));
  for (float& v : x) v = normal(bits);
  return x;
}

kernels::weight_source<float> matrix(const std::vector<float>& w, index_t k, index_t columns) {
  return {w.data(), {1, 1, 1}, {0, 0, 0}, k, columns, columns, 1};
}

/// w after rounding of its columns, by the definition.
std::vector<float> rounded(const std::vector<float>& w, index_t k, index_t columns) {
  std::vector<float> r(w.size());
  for (index_t j = 0; j < columns; ++j) {
    float largest = 0;
    for (index_t i = 0; i < k; ++i)
      largest = std::max(largest, std::fabs(w[static_cast<std::size_t>(i * columns + j)]));
    const float scale = largest / 127;
    for (index_t i = 0; i < k; ++i) {
      const auto at = static_cast<std::size_t>(i * columns + j);
      r[at] = scale > 0 ? std::nearbyint(w[at] / scale) * scale : 0;
    }
  }
  return r;
}

double expected_at(const std::vector<float>& x, const std::vector<float>& w, index_t k, index_t columns, index_t r,
                   index_t j) {
  double sum = 0;
  for (index_t i = 0; i < k; ++i)
    sum += static_cast<double>(x[static_cast<std::size_t>(r * k + i)]) *
           static_cast<double>(w[static_cast<std::size_t>(i * columns + j)]);
  return sum;
}

const index_t sizes[][3] = {{1, 1, 1},    {1, 7, 3},    {2, 16, 16},   {3, 33, 17},
                            {4, 130, 40}, {9, 64, 100}, {37, 401, 33}, {1, 900, 70}};

}  // namespace

TEST_CASE("the products of whole numbers are exact, by each instruction that this processor has", "[int8]") {
  int count = 0;
  kernels::for_int8_kernels([&](const kernels::int8_kernel& kernel) {
    ++count;
    INFO(kernel.name);
    std::mt19937 bits(1);
    std::uniform_int_distribution<int> number(-127, 127);
    for (const index_t rows : {1, 2, 3, 4, 5, 7, 8})
      for (const index_t steps : {0, 1, 3, 50}) {
        const index_t width = steps * kernels::int8_step;
        std::vector<std::int8_t> a(static_cast<std::size_t>(rows * width)),
            b(static_cast<std::size_t>(width * kernels::int8_columns));
        for (auto& v : a) v = static_cast<std::int8_t>(number(bits));
        for (auto& v : b) v = static_cast<std::int8_t>(number(bits));
        std::vector<std::int8_t> given = a;
        if (kernel.shifted)
          for (auto& v : given) v = static_cast<std::int8_t>(v + 128);
        std::int32_t sums[kernels::int8_rows * kernels::int8_columns];
        kernel.run(rows, steps, given.data(), width, b.data(), sums);
        for (index_t r = 0; r < rows; ++r)
          for (index_t j = 0; j < kernels::int8_columns; ++j) {
            std::int32_t sum = 0;
            for (index_t i = 0; i < width; ++i) {
              const int left = a[static_cast<std::size_t>(r * width + i)];
              const int right = b[static_cast<std::size_t>(i / 4 * 64 + j * 4 + i % 4)];
              sum += (kernel.shifted ? left + 128 : left) * right;
            }
            REQUIRE(sums[r * kernels::int8_columns + j] == sum);
          }
      }
  });
  SUCCEED(std::to_string(count) + " kinds of instructions");
}

TEST_CASE("a product with rounded weights is that with the weights after rounding", "[int8]") {
  auto& pool = cpu_impl::host_pool();
  for (const auto& [rows, k, columns] : sizes) {
    INFO(rows << " x " << k << " x " << columns);
    const auto x = numbers(rows * k, 1), w = numbers(k * columns, 2), r = rounded(w, k, columns);
    const kernels::int8_weights<float> form(matrix(w, k, columns), pool);
    CHECK(form.error() > 0);
    CHECK(form.error() < 0.02);
    std::vector<float> unpacked(static_cast<std::size_t>(form.row_width * k));
    for (index_t block = 0; block < form.blocks; ++block)
      form.unpack(block, 0, form.strips, unpacked.data() + form.strip_begin(block, 0));
    const kernels::packed_weights<float> packed(matrix(r, k, columns), pool);
    for (index_t i = 0; i < form.row_width * k; ++i)
      REQUIRE(unpacked[static_cast<std::size_t>(i)] == packed.strip(0, 0)[i]);
    if (rows > kernels::int8_few_rows<float>::most_rows) continue;
    for (const bool add : {false, true}) {
      std::vector<float> y(static_cast<std::size_t>(rows * columns), 1.f);
      const cpu_impl::conv_finish<float> nothing;
      kernels::int8_few_rows<float>{x.data(), rows, k, form, y.data(), columns, add, nothing}.compute(pool);
      for (index_t i = 0; i < rows; ++i)
        for (index_t j = 0; j < columns; ++j)
          REQUIRE(y[static_cast<std::size_t>(i * columns + j)] ==
                  Approx(expected_at(x, r, k, columns, i, j) + (add ? 1 : 0)).margin(1e-4).epsilon(1e-5));
    }
  }
}

TEST_CASE("a product of numbers of 8 bits is that of rounded rows and rounded columns", "[int8]") {
  auto& pool = cpu_impl::host_pool();
  kernels::for_int8_kernels([&](const kernels::int8_kernel& kernel) {
    for (const auto& [rows, k, columns] : sizes) {
      INFO(kernel.name << ": " << rows << " x " << k << " x " << columns);
      auto x = numbers(rows * k, 3);
      const auto w = numbers(k * columns, 4), r = rounded(w, k, columns);
      const kernels::int8_dot_weights<float> form(matrix(w, k, columns), pool);
      std::vector<float> y(static_cast<std::size_t>(rows * columns));
      const cpu_impl::conv_finish<float> nothing;
      kernels::int8_dot_product<float>{x.data(), rows, k, form, y.data(), columns, false, nothing, 0, kernel}.compute(
          pool);
      for (index_t i = 0; i < rows; ++i) {
        const std::vector<float> row(x.begin() + i * k, x.begin() + (i + 1) * k), of_row = rounded(row, k, 1);
        for (index_t j = 0; j < columns; ++j)
          REQUIRE(y[static_cast<std::size_t>(i * columns + j)] ==
                  Approx(expected_at(of_row, r, k, columns, 0, j)).margin(1e-3).epsilon(1e-4));
      }
    }
  });
}

TEST_CASE("what is not finite stays in its row", "[int8]") {
  auto& pool = cpu_impl::host_pool();
  for (const float wrong : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto x = numbers(3 * 40, 5);
    x[57] = wrong;
    for (std::size_t i = 80; i < 120; ++i) x[i] = 0;
    const auto w = numbers(40 * 20, 6);
    const kernels::int8_dot_weights<float> form(matrix(w, 40, 20), pool);
    kernels::for_int8_kernels([&](const kernels::int8_kernel& kernel) {
      std::vector<float> y(60);
      const cpu_impl::conv_finish<float> nothing;
      kernels::int8_dot_product<float>{x.data(), 3, 40, form, y.data(), 20, false, nothing, 0, kernel}.compute(pool);
      for (std::size_t j = 0; j < 20; ++j) {
        CHECK(std::isfinite(y[j]));
        CHECK(std::isnan(y[20 + j]));
        CHECK(y[40 + j] == 0);
      }
    });
  }
}
