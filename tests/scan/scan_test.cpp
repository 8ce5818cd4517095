// tests/scan/scan_test.cpp: cumsum, cumprod, logcumsumexp, cummax, cummin: values on every layout, limits, gradients,
// errors.
#include "../grad/differences.hpp"

#include <algorithm>
#include <limits>

using namespace sinter;
using differences::check;
using differences::random;

namespace {

const double inf = std::numeric_limits<double>::infinity();
const double nan_value = std::numeric_limits<double>::quiet_NaN();

/// y with y(..., i, ...) = f(state, x(..., i, ...)) along the axis, one element after the other.
template <class Y, class X, int R, class F>
tensor<Y, R> one_by_one(const tensor<X, R>& x, int axis, Y start, const F& f) {
  const auto y = empty<Y>(x.shape());
  const auto from = detail::swap_to_end(x, axis).contiguous();
  const auto to = empty<Y>(from.shape());
  const index_t n = x.shape()[axis];
  for (index_t i = 0; i < x.numel(); ++i) {
    const Y before = i % n == 0 ? start : to.data()[i - 1];
    to.data()[i] = f(before, from.data()[i]);
  }
  detail::swap_to_end(y, axis).in_place() = to;
  return y;
}

template <class A, class B>
double distance(const A& a, const B& b) {
  const auto x = eval(a).contiguous();
  const auto y = eval(b).contiguous();
  REQUIRE(x.shape() == y.shape());
  double worst = 0;
  auto at = y.begin();
  for (const auto v : x) worst = std::fmax(worst, std::abs(static_cast<double>(v) - static_cast<double>(*at++)));
  return worst;
}

/// Small integers, whose sums are exact in any order.
template <class T, int R>
tensor<T, R> whole(std::mt19937& gen, const extents<R>& shape) {
  return eval(cast<T>(floor(random(gen, shape, -9, 9))));
}

void check_all(std::mt19937& gen, const extents<3>& shape) {
  const auto x = whole<float>(gen, shape);
  const auto d = eval(cast<double>(x));
  for (int axis = 0; axis < 3; ++axis) {
    INFO(detail::shape_text(shape) << " along " << axis);
    const auto sums = one_by_one(d, axis, 0., [](double s, double v) { return s + v; });
    CHECK(distance(cumsum(x * 2, axis) + 1, eval(sums * 2 + 1)) == 0);
    CHECK(distance(cummax(x, axis).values,
                   one_by_one(d, axis, -inf, [](double s, double v) { return std::max(s, v); })) == 0);
    const auto [values, indices] = cummin(x, axis - 3);
    CHECK(distance(values, one_by_one(d, axis, inf, [](double s, double v) { return std::min(s, v); })) == 0);
    CHECK(distance(gather(x, axis, indices), values) == 0);
  }
}

}  // namespace

TEST_CASE("scans along every axis of every layout", "[scan]") {
  std::mt19937 gen(1);
  for (const index_t n : {0, 1, 2, 17, 4096, 4099, 140001}) check_all(gen, {{1, 1, n}});
  for (const auto& shape : {extents<3>{{1, 300, 41}},
                            {{3, 1, 70003}},
                            {{70003, 3, 1}},
                            {{1, 40, 1200}},
                            {{20, 1, 65537}},
                            {{5, 0, 4}},
                            {{6, 70, 5}}})
    check_all(gen, shape);
  const auto x = whole<float>(gen, extents<3>{{30, 40, 50}});
  CHECK(distance(cumsum(x.permute({2, 0, 1}), 1), tensor(cumsum(x, 0)).permute({2, 0, 1})) == 0);
  CHECK(distance(cumsum(x.flip(2).slice(2, 0, 50, 3), 2), cumsum(x.flip(2).slice(2, 0, 50, 3).clone(), 2)) == 0);
}

TEST_CASE("element types of scans: integers and bool widen, a mask counts", "[scan]") {
  static_assert(std::is_same_v<element_of<decltype(cumsum(tensor<bool, 1>(), 0))>, std::int64_t>);
  static_assert(std::is_same_v<element_of<decltype(cumprod(tensor<std::uint8_t, 1>(), 0))>, std::int64_t>);
  static_assert(std::is_same_v<element_of<decltype(cumsum(tensor<float, 1>(), 0))>, float>);
  static_assert(kernel_count<decltype(sqrt(cumsum(tensor<float, 2>() * 2, 1)))> == 1);
  const tensor<std::uint8_t, 1> x{200, 100, 3};
  CHECK(tensor(cumprod(x, 0))(2) == 60000);
  CHECK(tensor(cumsum(x > 50, 0))(2) == 2);
  CHECK(cummax(tensor<bool, 1>{false, true, false}, 0).values(2));
}

TEST_CASE("running extremes take the last of equals", "[scan]") {
  const auto [values, indices] = cummax(tensor<int, 1>{1, 3, 2, 3, 0}, 0);
  CHECK(to_string(indices) == to_string(tensor<std::int64_t, 1>{0, 1, 1, 3, 3}));
  CHECK(values(4) == 3);
  CHECK(cummin(tensor<int, 1>{1, 3, 1, 3}, 0).indices(3) == 2);
  for (const index_t n : {5, 70000, 200000}) CHECK(cummax(zeros<float>({n}), 0).indices(-1) == n - 1);
}

TEST_CASE("the error of running sums does not grow with the length", "[scan]") {
  const index_t n = 3000000;
  const tensor y = cumsum(full<float>({n}, 0.1f), 0);
  double worst = 0;
  for (index_t i = 0; i < n; ++i) {
    const double exact = static_cast<double>(0.1f) * static_cast<double>(i + 1);
    worst = std::fmax(worst, std::abs(static_cast<double>(y.data()[i]) - exact) / exact);
  }
  CHECK(worst < 6e-8);
}

TEST_CASE("the error of running logarithms of sums does not grow with the length", "[scan]") {
  const index_t n = 60001;
  const auto line = arange<double>(n);
  for (const tensor<double, 1>& wide :
       {tensor(line * 1e-4), tensor(line * -1e-4), tensor(sin(line)), tensor(0 * line)}) {
    const tensor<float, 1> x = cast<float>(wide);
    const tensor y = logcumsumexp(x, 0);
    const tensor columns = logcumsumexp(x.unsqueeze(1).broadcast_to({n, 3}), 0);
    double sum = 0, worst = 0;
    for (index_t i = 0; i < n; ++i) {
      sum += std::exp(static_cast<double>(x.data()[i]));
      for (const float got : {y.data()[i], columns(i, 1)})
        worst = std::fmax(worst, std::abs(static_cast<double>(got) - std::log(sum)) / (1 + std::abs(std::log(sum))));
    }
    CHECK(worst < 6e-8);
  }
}

TEST_CASE("scans do not depend on the number of threads", "[scan]") {
  std::mt19937 gen(2);
  const auto x = random(gen, {500000});
  const auto w = random(gen, {30000, 3});
  tensor<double, 1> sums;
  tensor<double, 2> columns;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const tensor s = cumsum(x * 3, 0);
    const tensor c = logcumsumexp(w, 0);
    if (threads == 1) {
      sums = s;
      columns = c;
    }
    CHECK_FALSE(eval(any(s != sums)).item());
    CHECK_FALSE(eval(any(c != columns)).item());
  }
  set_num_threads(2);
}

TEST_CASE("NaN and infinities in scans stay from where they stand", "[scan]") {
  for (const index_t n : {3, 5000, 140001})
    for (const index_t at : {index_t{1}, n / 2, n - 1}) {
      auto x = ones<double>({n});
      x(at) = nan_value;
      for (const tensor<double, 1>& y : {tensor(cumsum(x, 0)), tensor(cumprod(x, 0)), tensor(logcumsumexp(x, 0)),
                                         cummax(x, 0).values, cummin(x, 0).values}) {
        CHECK(!std::isnan(y(at - 1)));
        CHECK(std::isnan(y(at)));
        CHECK(std::isnan(y(n - 1)));
      }
      CHECK(cummax(x, 0).indices(n - 1) == at);
      x(at) = -inf;
      CHECK(tensor(cumsum(x, 0))(n - 1) == -inf);
      CHECK(cummin(x, 0).values(n - 1) == -inf);
      x(0) = inf;
      CHECK(std::isnan(tensor(cumsum(x, 0))(n - 1)));
      CHECK(tensor(logcumsumexp(x, 0))(n - 1) == inf);
    }
  CHECK(tensor(logcumsumexp(full<float>({100000}, 1e30f), 0))(99999) == 1e30f);
  CHECK(tensor(logcumsumexp(full<float>({9}, -std::numeric_limits<float>::infinity()), 0))(8) ==
        -std::numeric_limits<float>::infinity());
}

TEST_CASE("the gradient of cumprod needs no quotient", "[scan]") {
  struct row {
    std::vector<double> x, expected;
  };
  const row rows[] = {{{2, inf, 3}, {inf, 2 + 2 * 3, inf}},  // with g = 1: the products of the others, summed
                      {{inf, 2}, {3, inf}},
                      {{0, inf}, {inf, 0}},
                      {{3, 0, 0, 5}, {1, 3, 0, 0}},
                      {{1e-200, 1e-200, 1e200}, {2, 1, 0}},
                      {{1e300, 1e300, 1e-300}, {1e300 + 2, 1e300 + 1, inf}}};
  for (const auto& [x, expected] : rows) {
    const auto n = static_cast<index_t>(x.size());
    variable<double, 1> v(zeros<double>({n}));
    for (index_t i = 0; i < n; ++i) v.value()(i) = x[static_cast<std::size_t>(i)];
    const auto before = v.value().clone();
    cumprod(v, 0).backward(ones<double>({n}));
    for (index_t i = 0; i < n; ++i) {
      INFO(v.value() << " at " << i);
      const double e = expected[static_cast<std::size_t>(i)];
      if (std::isinf(e)) CHECK(v.grad()(i) == e);
      else CHECK(v.grad()(i) == Approx(e).margin(0));
    }
    CHECK_FALSE(eval(any(before != v.value())).item());
  }
  variable<float, 1> f(full<float>({2}, 1e30f));  // whose product is beyond float
  cumprod(f, 0).backward(ones<float>({2}));
  CHECK(f.grad()(0) == Approx(1e30).epsilon(1e-6));
  CHECK(f.grad()(1) == Approx(1e30).epsilon(1e-6));
}

TEST_CASE("gradients of scans, of work before and after them", "[scan]") {
  std::mt19937 gen(3);
  const auto x = random(gen, {4, 5, 3});
  const tensor<double, 3> zeros = where(x > 0.3, x, 0);
  for (const int axis : {0, 1, 2}) {
    check([&](const auto& v) { return cumsum(exp(v) * v, axis) * 2 + 1; }, 20, x);
    check([&](const auto& v) { return cummax(v, axis).values; }, 20, x);
    for (const auto& y : {x, zeros}) check([&](const auto& v) { return cumprod(v, axis); }, 60, y);
    for (const double scale : {1., 300.})
      check([&](const auto& v) { return logcumsumexp(v, axis); }, 20, eval(x * scale));
  }
}

TEST_CASE("a scan's result may be overwritten unless its derivative reads it", "[scan]") {
  const variable x = tensor<double, 1>{1, 2, 3};
  const variable s = cumsum(x, 0);
  s.value() += 1.;
  s.backward(ones<double>({3}));
  CHECK(x.grad()(0) == 3);
  const variable p = cumprod(x, 0);
  p.value() += 1.;
  CHECK_THROWS_WITH(p.backward(ones<double>({3})), Catch::Contains("cumprod") && Catch::Contains("modified in place"));
}

TEST_CASE("scans name a wrong axis", "[scan]") {
  const auto x = zeros<float>({2, 3});
  CHECK_THROWS_WITH(cumsum(x, 2), Catch::Contains("cumsum: axis 2 is out of range for rank 2"));
  CHECK_THROWS_AS(cummax(x, -3), index_error);
  CHECK_THROWS_AS(cumprod(tensor<float, 2>(), 0), shape_error);
  static_assert(!detail::takes_operands<ops::cumsum_op, tensor<float, 0>>);
}
