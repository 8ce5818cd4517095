// tests/reduce/limits_test.cpp: NaN, infinities and extreme values in reductions and rows, as NumPy and PyTorch have
// them.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <limits>

using namespace sinter;

namespace {

const float inf = std::numeric_limits<float>::infinity();
const float nan_value = std::numeric_limits<float>::quiet_NaN();

/// n values with x at position i.
tensor<float, 1> with(index_t n, index_t i, float x, float rest = 1) {
  auto t = full<float>({n}, rest);
  t(i) = x;
  return t;
}

}  // namespace

TEST_CASE("NaN wins in max, min, sum, prod, norm, logsumexp wherever it stands", "[limits]") {
  for (const index_t n : {1, 2, 15, 16, 17, 64, 65, 300, 70000})
    for (const index_t i : {index_t{0}, n / 2, n - 1}) {
      const auto x = with(n, i, nan_value);
      CHECK(std::isnan(eval(max(x)).item()));
      CHECK(std::isnan(eval(min(x)).item()));
      CHECK(std::isnan(eval(sum(x)).item()));
      CHECK(std::isnan(eval(prod(x)).item()));
      CHECK(std::isnan(eval(norm(x)).item()));
      CHECK(std::isnan(eval(logsumexp(x)).item()));
      CHECK(std::isnan(eval(logsumexp(with(n, i, nan_value, -inf))).item()));
      CHECK(eval(argmax(x)).item() == i);
      CHECK(eval(argmin(x)).item() == i);
      CHECK(eval(any(x * 0)).item());
      const auto columns = x.unsqueeze(1).broadcast_to({n, 3});
      CHECK(std::isnan(tensor(max(columns, 0))(1)));
      CHECK(std::isnan(tensor(logsumexp(columns, 0))(2)));
      CHECK(tensor(argmax(columns, 0))(1) == i);
    }
}

TEST_CASE("of equal extremes and of several NaNs the first has the index", "[limits]") {
  for (const index_t n : {2, 17, 70000, 200000}) {
    auto x = zeros<float>({n});
    CHECK(eval(argmax(x)).item() == 0);
    x(n - 1) = x(n / 2) = 5;
    CHECK(eval(argmax(x)).item() == n / 2);
    CHECK(eval(argmin(-x)).item() == n / 2);
    x(n - 1) = nan_value;
    CHECK(eval(argmax(x)).item() == n - 1);
    CHECK(tensor(argmax(x.reshape({n, 1}).broadcast_to({n, 2}), 0))(1) == n - 1);
  }
  for (index_t i = 0; i < 300; ++i) {  // wherever it stands in a vector, a piece of vectors, or after the last
    auto x = zeros<double>({300});
    for (index_t j = i; j < 300; j += 7) x(j) = 2;
    CHECK(eval(argmax(x)).item() == i);
    CHECK(eval(argmin(-x)).item() == i);
  }
  CHECK(eval(argmax(full<float>({20}, -inf))).item() == 0);
  CHECK(eval(argmin(full<float>({20}, inf))).item() == 0);
}

TEST_CASE("infinities in sums, extremes and logsumexp", "[limits]") {
  for (const index_t n : {2, 16, 40, 70001}) {
    CHECK(eval(sum(with(n, n - 1, inf))).item() == inf);
    CHECK(eval(max(full<float>({n}, -inf))).item() == -inf);
    CHECK(eval(min(full<float>({n}, inf))).item() == inf);
    CHECK(eval(max(with(n, 0, inf))).item() == inf);
    CHECK(eval(logsumexp(full<float>({n}, -inf))).item() == -inf);
    CHECK(eval(logsumexp(with(n, n / 2, inf))).item() == inf);
    CHECK(eval(logsumexp(with(n, n / 2, 3, -inf))).item() == 3);
    auto both = with(n, 0, inf);
    both(n - 1) = -inf;
    CHECK(std::isnan(eval(sum(both)).item()));
    CHECK(eval(logsumexp(both)).item() == inf);
  }
}

TEST_CASE("logsumexp neither overflows nor underflows", "[limits]") {
  for (const index_t n : {1, 15, 16, 17, 1000, 100000})
    for (const float c : {-1e4f, -90.f, 0.f, 90.f, 1e4f, 1e30f, -1e30f}) {
      const double expected = static_cast<double>(c) + std::log(static_cast<double>(n));
      CHECK(eval(logsumexp(full<float>({n}, c))).item() == Approx(expected).epsilon(1e-6));
      CHECK(tensor(logsumexp(full<float>({n, 3}, c), 0))(1) == Approx(expected).epsilon(1e-6));
    }
}

TEST_CASE("softmax and log_softmax of rows of any width at any scale", "[limits]") {
  for (const index_t n : {1, 2, 15, 16, 17, 31, 64, 1000, 100000})
    for (const float scale : {1.f, 1e4f, -1e4f}) {
      auto x = empty<float>({3, n});
      for (index_t i = 0; i < 3 * n; ++i) x.data()[i] = scale * std::sin(static_cast<float>(i));
      const tensor y = softmax(x, 1), z = log_softmax(x, 1);
      for (index_t r = 0; r < 3; ++r) {
        double largest = -1e30, sum = 0, mass = 0;
        for (index_t i = 0; i < n; ++i) largest = std::fmax(largest, static_cast<double>(x(r, i)));
        for (index_t i = 0; i < n; ++i) sum += std::exp(static_cast<double>(x(r, i)) - largest);
        bool good = true;
        for (index_t i = 0; i < n; ++i) {
          const double log_p = static_cast<double>(x(r, i)) - largest - std::log(sum);
          good = good && std::abs(static_cast<double>(y(r, i)) - std::exp(log_p)) <= 1e-6 * std::exp(log_p) * 4 + 1e-37;
          good = good && std::abs(static_cast<double>(z(r, i)) - log_p) <= 4e-6 * std::fmax(1, std::abs(log_p));
          mass += static_cast<double>(y(r, i));
        }
        CHECK(good);
        CHECK(mass == Approx(1).epsilon(1e-5));
      }
      const tensor t = softmax(x.transpose(), 0);
      CHECK_FALSE(eval(any(t != y.transpose())).item());
    }
}

TEST_CASE("rows of any width take what follows them into their pass", "[limits]") {
  // 2100 rows of 1024 are past the size from which results bypass the cache.
  for (const auto& shape :
       {extents<2>{{5, 1}}, {{7, 15}}, {{33, 16}}, {{40, 1000}}, {{2100, 1024}}, {{2100, 1023}}, {{2, 70000}}}) {
    auto x = empty<float>(shape);
    for (index_t i = 0; i < x.numel(); ++i) x.data()[i] = 1.5f + std::sin(static_cast<float>(i % 7919));
    const auto row = arange<float>(static_cast<float>(shape[1])) / static_cast<float>(shape[1]);
    const tensor s = softmax(x, 1), n = layer_norm(x), r = rms_norm(x * 3, 0.);
    const tensor fused = softmax(x, 1) * row + x;
    const tensor normed = layer_norm(x, row, row + 1), scaled = rms_norm(x * 3, row, 0.);
    CHECK_FALSE(eval(any(fused != s * row + x)).item());
    CHECK_FALSE(eval(any(normed != n * row + (row + 1))).item());
    CHECK_FALSE(eval(any(scaled != r * row)).item());
    auto kept = zeros<float>(shape);
    kept.in_place() = softmax(x, 1) * row + x;
    CHECK_FALSE(eval(any(kept != fused)).item());
    if (shape[1] == 1) continue;
    const tensor mean_of_rows = mean(n, 1), power = mean(square(n), 1), rms = mean(square(r), 1);
    CHECK(eval(max(abs(mean_of_rows))).item() < 1e-6f);
    CHECK(eval(max(abs(power - 1))).item() < 3e-3f);
    CHECK(eval(max(abs(rms - 1))).item() < 1e-5f);
  }
}

TEST_CASE("norms of rows that are constant, huge, empty or not finite", "[limits]") {
  CHECK_FALSE(eval(any(tensor(layer_norm(full<float>({3, 17}, 1e4f))) != 0)).item());
  CHECK_FALSE(eval(any(tensor(rms_norm(zeros<float>({3, 17}))) != 0)).item());
  CHECK(tensor(layer_norm(zeros<float>({0, 4}))).numel() == 0);
  CHECK(tensor(layer_norm(zeros<float>({4, 0}))).numel() == 0);
  CHECK(std::isnan(tensor(layer_norm(with(19, 3, nan_value)))(18)));
  CHECK(std::isnan(tensor(layer_norm(with(19, 18, inf)))(0)));
  const auto x = ones<float>({2, 3});
  CHECK_THROWS_AS(layer_norm(x, -1.), value_error);
  CHECK_THROWS_AS(rms_norm(x, std::numeric_limits<double>::quiet_NaN()), value_error);
  CHECK_THROWS_WITH(layer_norm(x, ones<float>({1}), ones<float>({3})), Catch::Contains("weight of shape"));
  CHECK_THROWS_WITH(layer_norm(x, ones<float>({3}), ones<float>({2})), Catch::Contains("bias of shape"));
  CHECK_THROWS_AS(rms_norm(x, ones<float>({4})), shape_error);
}

TEST_CASE("norms of rows whose squares leave the range of float, and of rows of equal values", "[limits]") {
  for (const index_t n : {1, 5, 64, 4096, 70001}) {
    const tensor line = sin(arange<double>(2 * n).reshape({2, n}) + 1) * 1.5;
    for (const double scale : {1e30, 1e-30, 2e38}) {
      const tensor<float, 2> x = cast<float>(line * scale);
      const tensor wide = cast<double>(x) / scale;
      const tensor y = wide / sqrt(mean(wide * wide, 1, keepdim));
      INFO("rows of " << n << ", about " << scale);
      CHECK(eval(max(abs(cast<double>(rms_norm(x, 0)) - y))).item() < 1e-5);
      const tensor damped = wide / sqrt(mean(wide * wide, 1, keepdim) + 1e-6 / scale / scale);
      CHECK(eval(max(abs(cast<double>(rms_norm(x)) / damped - 1))).item() < 1e-5);
      const variable v = x.clone();
      sum(rms_norm(v, 0) * cast<float>(y * y)).backward();  // of g: (g - y mean(g y)) / the root mean square
      const tensor slope = mean(y * y * y, 1, keepdim), root = sqrt(mean(wide * wide, 1, keepdim));
      CHECK(eval(max(abs(cast<double>(v.grad()) * scale - (y * y - y * slope) / root))).item() < 1e-4);
    }
    CHECK_FALSE(eval(any(tensor(layer_norm(full<float>({2, n}, 12345.678f))) != 0)).item());
  }
}

TEST_CASE("softmax with infinities and NaN", "[limits]") {
  for (const index_t n : {2, 16, 19}) {
    const tensor some = softmax(with(n, n - 1, 2, -inf), 0);
    CHECK(some(n - 1) == 1);
    CHECK(some(0) == 0);
    const tensor ls = log_softmax(with(n, n - 1, 2, -inf), 0);
    CHECK(ls(n - 1) == 0);
    CHECK(ls(0) == -inf);
    CHECK(std::isnan(tensor(softmax(full<float>({n}, -inf), 0))(0)));
    CHECK(std::isnan(tensor(softmax(with(n, 0, inf), 0))(0)));
    CHECK(std::isnan(tensor(softmax(with(n, n - 1, nan_value), 0))(0)));
    CHECK(std::isnan(tensor(log_softmax(with(n, n - 1, nan_value), 0))(0)));
  }
}

TEST_CASE("cross_entropy at large logits", "[limits]") {
  const tensor<float, 2> x{{1e4f, 1e4f, -1e4f}, {-1e4f, 0, 1e4f}};
  const tensor losses = cross_entropy(x, tensor<int, 1>{1, 0}, reduction::none);
  CHECK(losses(0) == Approx(std::log(2.)).epsilon(1e-6));
  CHECK(losses(1) == 2e4f);
}

TEST_CASE("one axis may be written as a list", "[reduce]") {
  const tensor<float, 2> a = {{1, 2, 3}, {4, 5, 6}};
  CHECK(eval(sum(a, {0}))(2) == 9);
  CHECK(eval(max(a, {1}, keepdim))(1, 0) == 6);
}
