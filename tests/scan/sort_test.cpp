// tests/scan/sort_test.cpp: sort, argsort and topk: values and order on every layout, limits, gradients, errors.
#include "../grad/differences.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

using namespace sinter;
using differences::check;
using differences::random;

namespace {

/// The stable order of a line, NaN as the largest.
template <class T>
std::vector<index_t> order_of(const std::vector<T>& x, bool descending) {
  std::vector<index_t> order(x.size());
  std::iota(order.begin(), order.end(), 0);
  const auto below = [&](index_t a, index_t b) {
    const T p = x[static_cast<std::size_t>(a)], q = x[static_cast<std::size_t>(b)];
    return p < q || (p == p && q != q);
  };
  std::sort(order.begin(), order.end(), [&](index_t a, index_t b) {
    const bool before = descending ? below(b, a) : below(a, b), behind = descending ? below(a, b) : below(b, a);
    return before || (!behind && a < b);
  });
  return order;
}

/// Is (values, indices) the first k of x along the axis?
template <class T, int R>
bool in_order(const tensor<T, R>& x, int axis, bool descending, const values_and_indices<tensor<T, R>>& got) {
  const auto from = detail::swap_to_end(x, axis).contiguous(),
             values = detail::swap_to_end(got.values, axis).contiguous();
  const auto indices = detail::swap_to_end(got.indices, axis).contiguous();
  const index_t n = from.shape()[R - 1], k = values.shape()[R - 1];
  for (index_t line = 0; n > 0 && line < x.numel() / n; ++line) {
    const T* const row = from.data() + line * n;
    const auto order = order_of(std::vector<T>(row, row + n), descending);
    for (index_t i = 0; i < k; ++i) {
      const index_t expected = order[static_cast<std::size_t>(i)];
      if (indices.data()[line * k + i] != expected ||
          std::memcmp(&values.data()[line * k + i], &row[expected], sizeof(T)) != 0)
        return false;
    }
  }
  return true;
}

void check_all(std::mt19937& gen, const extents<3>& shape) {
  const auto x = eval(cast<float>(floor(random(gen, shape, -40, 40)) / 4));
  for (int axis = 0; axis < 3; ++axis) {
    INFO(detail::shape_text(shape) << " along " << axis);
    const index_t n = shape[axis];
    for (const bool descending : {false, true}) {
      CHECK(in_order(x, axis, descending, sort(x, axis - 3, descending)));
      for (const index_t k : {index_t{0}, n / 20, n / 2, n})
        CHECK(in_order(x, axis, descending, topk(x, k, axis, descending)));
    }
    CHECK(in_order(eval(x * 2), axis, false, sort(x * 2, axis)));
  }
}

}  // namespace

TEST_CASE("sort and topk along every axis of every layout", "[sort]") {
  std::mt19937 gen(1);
  for (const index_t n : {0, 1, 2, 17, 255, 256, 300, 200001}) check_all(gen, {{1, 1, n}});
  for (const auto& shape :
       {extents<3>{{1, 300, 41}}, {{3, 1, 5000}}, {{5000, 19, 1}}, {{140001, 1, 2}}, {{4, 0, 3}}, {{6, 70, 5}}})
    check_all(gen, shape);
  const auto turned = eval(cast<float>(random(gen, {6, 60, 70}))).transpose().flip(0);
  CHECK(in_order(turned, 1, false, sort(turned, 1)));
}

TEMPLATE_TEST_CASE("every element type is sorted", "[sort]", double, std::int8_t, std::int64_t, std::uint8_t) {
  std::mt19937 gen(2);
  auto x = eval(cast<TestType>(random(gen, {700}, std::is_signed_v<TestType> ? -200 : 0, 200)));
  x(5) = std::numeric_limits<TestType>::max();
  x(9) = std::numeric_limits<TestType>::lowest();
  CHECK(in_order(x, 0, false, sort(x, 0)));
  CHECK(in_order(x, 0, true, topk(x, 9, 0)));
}

TEST_CASE("NaN is largest, -0 equals 0, infinities at the ends", "[sort]") {
  const float inf = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();
  for (const index_t n : {12, 600}) {
    auto x = zeros<float>({n});
    x(1) = -0.f;
    x(2) = nan_value;
    x(3) = -nan_value;
    x(4) = inf;
    x(5) = -inf;
    x(6) = std::numeric_limits<float>::denorm_min();
    x(7) = -std::numeric_limits<float>::denorm_min();
    x(8) = std::numeric_limits<float>::max();
    CHECK(in_order(x, 0, false, sort(x, 0)));
    CHECK(in_order(x, 0, true, sort(x, 0, true)));
    CHECK(sort(x, 0).indices(-1) == 3);
    CHECK(topk(x, 1, 0).indices(0) == 2);
    CHECK(topk(x, 1, 0, false).values(0) == -inf);
  }
}

TEST_CASE("argsort picks what sort gives", "[sort]") {
  std::mt19937 gen(3);
  const variable x = random(gen, {30, 40});
  const auto order = argsort(x * 2, 0);
  static_assert(std::is_same_v<decltype(order), const tensor<std::int64_t, 2>>);
  CHECK(argsort(tensor<int, 1>{2, 1})(0) == 1);
  CHECK_FALSE(eval(any(gather(x.value(), 0, order) != sort(x.value(), 0).values)).item());
}

TEST_CASE("gradients of sort and topk go back to the elements", "[sort]") {
  std::mt19937 gen(4);
  const auto x = random(gen, {7, 6});
  check([](const auto& v) { return eval(sort(exp(v), 1, true).values * v); }, 20, x);
  check([](const auto& v) { return topk(v * v, 2, 0).values; }, 20, x);
}

TEST_CASE("indices that were overwritten are not used for a gradient", "[sort]") {
  const variable x = tensor<double, 1>{3, 1, 2};
  auto [values, indices] = sort(x, 0);
  indices += 1;
  CHECK_THROWS_WITH(values.backward(ones<double>({3})),
                    Catch::Contains("sort") && Catch::Contains("operand of shape (3,) was modified"));
}

TEST_CASE("sorting does not depend on the number of threads", "[sort]") {
  std::mt19937 gen(5);
  const auto x = eval(cast<float>(floor(random(gen, {200, 900, 1}, -50, 50))));
  for (const int threads : {1, 3}) {
    set_num_threads(threads);
    CHECK(in_order(x, 1, false, sort(x, 1)));
    CHECK(in_order(x, 0, false, sort(x, 0)));
  }
  set_num_threads(2);
}

TEST_CASE("sort and topk name a wrong axis and a k that is too large", "[sort]") {
  const auto x = zeros<float>({2, 3});
  CHECK_THROWS_WITH(sort(x, 2), Catch::Contains("sort: axis 2 is out of range for rank 2"));
  CHECK_THROWS_WITH(topk(x, 4), Catch::Contains("topk: there are no 4 elements on axis 1 of shape (2, 3)"));
  CHECK_THROWS_AS(topk(x, -1), shape_error);
  CHECK_THROWS_AS(argsort(tensor<float, 1>(), 0), shape_error);
}
