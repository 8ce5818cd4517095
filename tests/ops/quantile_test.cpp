// tests/ops/quantile_test.cpp: what stands at a place of the order: quantiles, medians, kthvalue and mode.
#include "../grad/differences.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

using namespace sinter;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

/// The quantile of values in double, with a plain sort.
double quantile_of(std::vector<double> v, double q, between_elements rule) {
  std::sort(v.begin(), v.end());
  const double place = q * static_cast<double>(v.size() - 1), below = std::floor(place);
  const double low = v[static_cast<std::size_t>(below)], high = v[static_cast<std::size_t>(std::ceil(place))];
  switch (rule) {
    case between_elements::lower:
      return low;
    case between_elements::higher:
      return high;
    case between_elements::midpoint:
      return (low + high) / 2;
    case between_elements::nearest:
      return v[static_cast<std::size_t>(std::nearbyint(place))];
    default:
      return low + (high - low) * (place - below);
  }
}

}  // namespace

TEST_CASE("quantile gives the value at a place of the order, along any axis and between elements by each rule") {
  std::mt19937 gen(5);
  const tensor x = differences::random(gen, {3, 6, 2});
  const double places[] = {0, 0.1, 0.5, 0.9, 1};
  const tensor<double, 1> list(from_data<double>(places, {5}));
  for (const auto rule : {between_elements::linear, between_elements::lower, between_elements::higher,
                          between_elements::midpoint, between_elements::nearest}) {
    const tensor all = quantile(x, list, 1, {.interpolation = rule});
    REQUIRE(all.shape() == extents<3>{{5, 3, 2}});
    for (index_t p = 0; p < 5; ++p) {
      const tensor one = quantile(x, places[p], 1, keepdim, {.interpolation = rule});
      REQUIRE(one.shape() == extents<3>{{3, 1, 2}});
      for (index_t i = 0; i < 3; ++i)
        for (index_t j = 0; j < 2; ++j) {
          std::vector<double> line;
          for (index_t k = 0; k < 6; ++k) line.push_back(x(i, k, j));
          const double expected = quantile_of(line, places[p], rule);
          CHECK(all(p, i, j) == Approx(expected).epsilon(1e-12));
          CHECK(one(i, 0, j) == Approx(expected).epsilon(1e-12));
        }
      CHECK(quantile(x, places[p], {.interpolation = rule}).item() ==
            Approx(quantile_of({x.contiguous().begin(), x.contiguous().end()}, places[p], rule)).epsilon(1e-12));
    }
  }
  CHECK(quantile(x, list, -1, keepdim).shape() == extents<4>{{5, 3, 6, 1}});
  CHECK(quantile(x, list).shape() == extents<1>{{5}});
  const tensor<float, 1> even = {10, 20, 30, 40};
  CHECK(quantile(even, 0.5, 0, {.interpolation = between_elements::nearest}).item() == 30);  // place 1.5
  CHECK(quantile(even * 2, 0.5).item() == 50);
  CHECK(quantile(full<float>(7), 0.3, -1).item() == 7);
  CHECK(quantile(full<float>(7), tensor<float, 1>{0, 1}, 0, keepdim).shape() == extents<1>{{2}});
}

TEST_CASE("a quantile of NaN is NaN, and nanquantile leaves NaN out") {
  const tensor<float, 2> x = {{4, not_a_number, 0, 1}, {1, 2, 3, 4}, {not_a_number, not_a_number, 5, not_a_number}};
  const tensor with = quantile(x, 0.5, 1), without = nanquantile(x, 0.5, 1);
  CHECK((std::isnan(with(0)) && with(1) == 2.5f && std::isnan(with(2))));
  CHECK((without(0) == 1 && without(1) == 2.5f && without(2) == 5));
  CHECK(std::isnan(nanquantile(full<float>({3}, not_a_number), 0.5).item()));
  CHECK(nanquantile(x, tensor<double, 1>{0, 1}, 0, keepdim).shape() == extents<3>{{2, 1, 4}});
  CHECK(nanquantile(x, 1.0).item() == 5);
}

TEST_CASE("quantiles have gradients, for their places too") {
  std::mt19937 gen(6);
  const tensor x = differences::random(gen, {4, 5});
  differences::check([](const auto& v) { return quantile(v, 0.3, 1); }, 20, x);
  differences::check([](const auto& v) { return quantile(v, tensor<double, 1>{0.1, 0.6}, 0, keepdim); }, 20, x);
  differences::check([](const auto& v, const auto& q) { return nanquantile(v, q, 1); }, 20, x,
                     tensor<double, 1>{0.15, 0.6});
  differences::check([](const auto& v) { return quantile(v, 0.3, {.interpolation = between_elements::midpoint}); }, 20,
                     x);
  const variable<float, 1> v(tensor<float, 1>{3, 1, 2, 4});
  quantile(v, 0.5, 0, {.interpolation = between_elements::higher}).backward();
  CHECK((v.grad()(0) == 1 && v.grad()(2) == 0));
}

TEST_CASE("quantiles refuse what has none") {
  const tensor<float, 2> x = {{1, 2}, {3, 4}};
  CHECK_THROWS_WITH(quantile(x, 1.5), "quantile: q is 1.5; it must lie in [0, 1]");
  CHECK_THROWS_WITH(nanquantile(x, tensor<float, 1>{0.5f, -1}, 1),
                    "nanquantile: q holds a value that does not lie in [0, 1]");
  CHECK_THROWS_WITH(quantile(x, not_a_number), "quantile: q is nan; it must lie in [0, 1]");
  CHECK_THROWS_WITH(quantile(x, 0.5, 2), "quantile: axis 2 is out of range for rank 2; use -2 to 1");
  CHECK_THROWS_WITH(quantile(empty<float>({0}), 0.5), "quantile: no values along axis 0 of shape (0,)");
  CHECK_THROWS_WITH(median(empty<float>({2, 0}), 1), "median: no values along axis 1 of shape (2, 0)");
  CHECK_THROWS_WITH(mode(empty<float>({0})), "mode: no values along axis 0 of shape (0,)");
  CHECK_THROWS_WITH(kthvalue(x, 3), "kthvalue: there is no element 3 of 2 on axis 1; count from 1");
  CHECK_THROWS_WITH(kthvalue(x, 0, 0), "kthvalue: there is no element 0 of 2 on axis 0; count from 1");
}

TEST_CASE("median gives the lower element in the middle, and NaN where one is") {
  const tensor<float, 2> x = {{3, 1, 2, 5}, {4, not_a_number, 0, 1}};
  const auto [values, indices] = median(x, 1);
  CHECK((values(0) == 2 && std::isnan(values(1)) && indices(0) == 2 && indices(1) == 1));
  const auto without = nanmedian(x, 1, keepdim);
  CHECK(without.values.shape() == extents<2>{{2, 1}});
  CHECK((without.values(0, 0) == 2 && without.values(1, 0) == 1 && without.indices(1, 0) == 3));
  CHECK((std::isnan(median(x).item()) && nanmedian(x).item() == 2));
  CHECK(std::isnan(median(empty<float>({0})).item()));
  CHECK(median(tensor<int, 1>{4, 2, 9, 1}).item() == 2);
  CHECK(median(full<float>(3), 0).values.item() == 3);
  CHECK(median(empty<float>({3, 0}), 0).indices.shape() == extents<1>{{0}});
  CHECK(median(x.slice(0, 0, 1) * 2, 0).values(3) == 10);
  const variable<float, 1> v(tensor<float, 1>{2, 1, 2, 3, not_a_number});
  nanmedian(v).backward();
  CHECK((v.grad()(0) == 0.5f && v.grad()(1) == 0 && v.grad()(2) == 0.5f && v.grad()(4) == 0));
  v.zero_grad();
  median(v).backward();
  CHECK((v.grad()(0) == 0 && v.grad()(4) == 1));
  std::mt19937 gen(7);
  differences::check([](const auto& w) { return median(w, 0).values; }, 20, differences::random(gen, {5, 3}));
}

TEST_CASE("kthvalue counts from the smallest, and mode gives the most frequent value") {
  const tensor<float, 2> x = {{3, 1, 2}, {not_a_number, 7, 7}};
  const auto [values, indices] = kthvalue(x, 2);
  CHECK((values(0) == 2 && indices(0) == 2 && values(1) == 7 && indices(1) == 2));
  CHECK(std::isnan(kthvalue(x, 2, 0, keepdim).values(0, 0)));
  CHECK(kthvalue(x, 1, 0, keepdim).indices.shape() == extents<2>{{1, 3}});
  CHECK(kthvalue(full<int>(4), 1, -1).values.item() == 4);
  const tensor<int, 2> votes = {{5, 2, 5, 2, 1}, {1, 2, 3, 4, 5}};
  const auto most = mode(votes);
  CHECK((most.values(0) == 2 && most.indices(0) == 3 && most.values(1) == 1 && most.indices(1) == 0));
  CHECK((mode(x, 1, keepdim).values(1, 0) == 7 && mode(x, 1).indices(1) == 2));
  CHECK(mode(full<float>(4), 0).indices.item() == 0);
  const variable<float, 2> v(tensor<float, 2>{{1, 3, 3}});
  variable loss = sum(mode(v).values) + 2 * sum(kthvalue(v, 1).values);
  loss.backward();
  CHECK((v.grad()(0, 0) == 2 && v.grad()(0, 1) == 0 && v.grad()(0, 2) == 1));
}

TEST_CASE("sorts take a scalar as a line of one element") {
  const variable<float, 0> x(full<float>(4));
  auto [values, indices] = sort(x, -1, true);
  values.backward();
  CHECK((values.item() == 4 && indices.item() == 0 && x.grad().item() == 1));
  CHECK(argsort(x).item() == 0);
  CHECK(topk(x.value(), 1, 0).values.item() == 4);
  CHECK_THROWS_WITH(topk(x.value(), 2), "topk: there are no 2 elements in a scalar");
  CHECK_THROWS_WITH(sort(x, 1), "sort: axis 1 is out of range for rank 1; use -1 to 0");
}
