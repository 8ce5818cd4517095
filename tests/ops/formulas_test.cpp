// tests/ops/formulas_test.cpp: functions that are formulas of other ops: counts, sums without NaN, differences,
// closeness.
#include "../catch.hpp"

#include <limits>

#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(),
                infinity = std::numeric_limits<float>::infinity();

}  // namespace

TEST_CASE("count_nonzero, nansum, nanmean and stddev reduce as sum does") {
  const tensor<float, 2> x = {{0, 2, not_a_number}, {3, 0, 4}};
  CHECK(eval(count_nonzero(x)).item() == 4);
  const tensor<std::int64_t, 1> columns = count_nonzero(x, 0);
  CHECK((columns(0) == 1 && columns(1) == 1 && columns(2) == 2));
  CHECK(eval(count_nonzero(x, {0, 1}, keepdim)).shape() == extents<2>{{1, 1}});
  CHECK(eval(count_nonzero(tensor<bool, 1>{true, false, true})).item() == 2);
  CHECK(eval(nansum(x)).item() == 9);
  const tensor<float, 1> means = nanmean(x, 1);
  CHECK((means(0) == 1 && means(1) == Approx(7 / 3.f)));
  CHECK(std::isnan(eval(nanmean(tensor<float, 1>{not_a_number, not_a_number})).item()));
  CHECK(eval(nanmean(x, 0, keepdim)).shape() == extents<2>{{1, 3}});
  const tensor<float, 1> spread = stddev(tensor<float, 2>{{1, 3}, {2, 2}}, 1);
  CHECK((spread(0) == Approx(std::sqrt(2.f)) && spread(1) == 0));
  const variable<float, 2> v(x);
  variable total = sum(nanmean(v, 1)) + nansum(v);
  total.backward();
  CHECK((v.grad()(0, 0) == 1.5f && v.grad()(0, 2) == 0 && v.grad()(1, 1) == Approx(4 / 3.f)));
}

TEST_CASE("diff gives differences of neighbours, of any order") {
  const tensor<float, 2> x = {{1, 4, 9, 16}, {0, 0, 1, 0}};
  const tensor first = diff(x), second = diff(x, 2), rows = diff(x, 1, 0);
  CHECK((first.shape() == extents<2>{{2, 3}} && first(0, 2) == 7 && first(1, 2) == -1));
  CHECK((second.shape() == extents<2>{{2, 2}} && second(0, 1) == 2));
  CHECK((rows.shape() == extents<2>{{1, 4}} && rows(0, 3) == -16));
  CHECK(diff(x, 0)(0, 1) == 4);
  CHECK(diff(x, 4).numel() == 0);
  CHECK(diff(x, 9).numel() == 0);
  CHECK_THROWS_WITH(diff(x, -1), "diff: -1 times; it must be 0 or more");
  const variable<float, 2> v(x);
  variable loss = sum(diff(v) * first);
  loss.backward();
  CHECK((v.grad()(0, 0) == -3 && v.grad()(0, 1) == 3 - 5 && v.grad()(0, 3) == 7));
}

TEST_CASE("addcmul and addcdiv add a multiple in one pass") {
  const tensor<float, 1> x = {1, 2}, a = {3, 4}, b = {2, 8};
  const tensor<float, 1> product = addcmul(x, a, b, 0.5), quotient = addcdiv(x, a, b);
  CHECK((product(0) == 4 && product(1) == 18 && quotient(0) == 2.5f && quotient(1) == 2.5f));
}

TEST_CASE("isclose and allclose allow a distance, and infinities and NaN as asked") {
  const tensor<float, 1> a = {1, 1, infinity, infinity, not_a_number, 0},
                         b = {1.000001f, 1.1f, infinity, -infinity, not_a_number, 1e-9f};
  const tensor<bool, 1> close = isclose(a, b);
  CHECK((close(0) && !close(1) && close(2) && !close(3) && !close(4) && close(5)));
  CHECK(eval(isclose(a, b, {.equal_nan = true}))(4));
  CHECK(!allclose(a, b));
  CHECK(allclose(a.slice(0, 0, 2), b.slice(0, 0, 2), {.rtol = 0.1}));
  CHECK(allclose(a.slice(0, 2, 3), full<float>({1}, infinity)));
}

TEST_CASE("max_abs_difference is the largest distance, in double") {
  const tensor<float, 1> a = {1, 2, infinity}, b = {1.5f, 1, infinity};
  CHECK(max_abs_difference(a, b) == 1);
  CHECK(max_abs_difference(variable(a), b * 1) == 1);
  CHECK(max_abs_difference(tensor<float, 1>{1e30f}, tensor<float, 1>{-1e30f}) == 2 * static_cast<double>(1e30f));
  CHECK(max_abs_difference(tensor<std::int64_t, 1>{7, -2}, tensor<std::int64_t, 1>{4, 2}) == 4);
  CHECK(std::isnan(max_abs_difference(a, tensor<float, 1>{1, not_a_number, 0})));
  CHECK(std::isinf(max_abs_difference(a, -b)));
  CHECK(max_abs_difference(zeros<float>({0, 3}), zeros<float>({0, 3})) == 0);
  CHECK_THROWS_WITH(max_abs_difference(a, a.slice(0, 0, 1)),
                    "max_abs_difference: shapes (3,) and (1,); they must be the same");
}
