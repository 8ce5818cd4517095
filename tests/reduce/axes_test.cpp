// tests/reduce/axes_test.cpp: reductions over all subsets of axes against naive loops in double, on any number of
// threads.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <random>
#include <vector>

#include "../same_bits.hpp"

using namespace sinter;

namespace {

tensor<float, 4> random4(std::mt19937& gen, const extents<4>& shape) {
  auto t = empty<float>(shape);
  for (float& v : t) v = static_cast<float>(static_cast<int>(gen() % 2001) - 1000) / 500;
  return t;
}

/// The values that fall on each kept position, in row-major order of both.
std::vector<std::vector<double>> groups(const tensor<float, 4>& x, unsigned reduced) {
  extents<4> kept = x.shape();
  for (int d = 0; d < 4; ++d)
    if (reduced >> d & 1) kept[d] = 1;
  std::vector<std::vector<double>> out(static_cast<std::size_t>(kept.numel()));
  const auto s = x.shape();
  for (index_t a = 0; a < s[0]; ++a)
    for (index_t b = 0; b < s[1]; ++b)
      for (index_t c = 0; c < s[2]; ++c)
        for (index_t d = 0; d < s[3]; ++d) {
          const index_t at[4] = {a, b, c, d};
          index_t linear = 0;
          for (int k = 0; k < 4; ++k) linear = linear * kept[k] + (kept[k] == 1 ? 0 : at[k]);
          out[static_cast<std::size_t>(linear)].push_back(static_cast<double>(x(a, b, c, d)));
        }
  return out;
}

/// f(x, axes) for the axes in a bit set.
template <class F>
auto with_axes(unsigned reduced, const F& f) -> decltype(f(std::integral_constant<int, 1>{}, (const index_t*)nullptr)) {
  index_t axes[4];
  int n = 0;
  for (int d = 3; d >= 0; --d)  // in any order
    if (reduced >> d & 1) {
      axes[n] = n % 2 == 0 ? d : d - 4;
      ++n;
    }
  switch (n) {
    case 1:
      return f(std::integral_constant<int, 1>{}, axes);
    case 2:
      return f(std::integral_constant<int, 2>{}, axes);
    case 3:
      return f(std::integral_constant<int, 3>{}, axes);
    default:
      return f(std::integral_constant<int, 4>{}, axes);
  }
}

template <int N>
struct axes_list {
  index_t v[std::size_t{N}];
};
template <int N>
axes_list<N> list_of(const index_t* a) {
  axes_list<N> l;
  for (int i = 0; i < N; ++i) l.v[i] = a[i];
  return l;
}

#define REDUCE(name, x, reduced)                                         \
  with_axes(reduced, [&](auto n, const index_t* a) {                     \
    const tensor r = name(x, list_of<decltype(n)::value>(a).v, keepdim); \
    return r;                                                            \
  })

template <class Tensor, class Expected>
void compare(const char* what, const Tensor& got, const std::vector<std::vector<double>>& parts,
             const Expected& expected, double tolerance) {
  INFO(what);
  REQUIRE(got.numel() == static_cast<index_t>(parts.size()));
  for (std::size_t i = 0; i < parts.size(); ++i)
    REQUIRE(static_cast<double>(got.data()[i]) == Approx(expected(parts[i])).epsilon(tolerance).margin(tolerance));
}

double total(const std::vector<double>& v) {
  double s = 0;
  for (double x : v) s += x;
  return s;
}

}  // namespace

TEST_CASE("every reduction over every subset of four axes matches a naive one", "[reduce]") {
  std::mt19937 gen(1);
  for (const auto& shape :
       {extents<4>{{2, 3, 4, 5}}, extents<4>{{1, 7, 1, 18}}, extents<4>{{5, 1, 33, 1}}, extents<4>{{3, 2, 40, 65}}}) {
    const auto base = random4(gen, shape);
    const tensor<float, 4> strided = base.permute({2, 0, 3, 1}).flip(1);
    for (const auto& x : {base, strided})
      for (unsigned reduced = 1; reduced < 16; ++reduced) {
        const auto parts = groups(x, reduced);
        compare("sum", REDUCE(sum, x, reduced), parts, total, 1e-5);
        compare(
            "mean", REDUCE(mean, x * 2, reduced), parts,
            [](const auto& v) { return 2 * total(v) / static_cast<double>(v.size()); }, 1e-5);
        compare(
            "max", REDUCE(max, x, reduced), parts, [](const auto& v) { return *std::max_element(v.begin(), v.end()); },
            0);
        compare(
            "argmax", REDUCE(argmax, x, reduced), parts,
            [](const auto& v) { return static_cast<double>(std::max_element(v.begin(), v.end()) - v.begin()); }, 0);
        compare(
            "logsumexp", REDUCE(logsumexp, x * 3, reduced), parts,
            [](const auto& v) {
              double s = 0;
              for (double e : v) s += std::exp(3 * e);
              return std::log(s);
            },
            2e-6);
      }
  }
}

TEST_CASE("the other reductions over every subset of axes match naive ones", "[reduce]") {
  std::mt19937 gen(2);
  for (const auto& shape : {extents<4>{{2, 3, 4, 5}}, extents<4>{{4, 1, 3, 17}}}) {
    const auto x = random4(gen, shape);
    for (unsigned reduced = 1; reduced < 16; ++reduced) {
      const auto parts = groups(x, reduced);
      compare(
          "min", REDUCE(min, x, reduced), parts, [](const auto& v) { return *std::min_element(v.begin(), v.end()); },
          0);
      compare(
          "argmin", REDUCE(argmin, x, reduced), parts,
          [](const auto& v) { return static_cast<double>(std::min_element(v.begin(), v.end()) - v.begin()); }, 0);
      compare(
          "any", REDUCE(any, x > 1.9f, reduced), parts,
          [](const auto& v) {
            for (double e : v)
              if (e > static_cast<double>(1.9f)) return 1.;
            return 0.;
          },
          0);
      compare(
          "all", REDUCE(all, x < 1.9f, reduced), parts,
          [](const auto& v) {
            for (double e : v)
              if (!(e < static_cast<double>(1.9f))) return 0.;
            return 1.;
          },
          0);
      compare(
          "norm", REDUCE(norm, x, reduced), parts,
          [](const auto& v) {
            double s = 0;
            for (double e : v) s += e * e;
            return std::sqrt(s);
          },
          1e-5);
      compare(
          "prod", REDUCE(prod, x * 0.5f + 1.2f, reduced), parts,
          [](const auto& v) {
            double s = 1;
            for (double e : v) s *= e * 0.5 + static_cast<double>(1.2f);
            return s;
          },
          2e-5);
      if (parts[0].size() > 1)
        compare(
            "var", REDUCE(var, x, reduced), parts,
            [](const auto& v) {
              const double m = total(v) / static_cast<double>(v.size());
              double s = 0;
              for (double e : v) s += (e - m) * (e - m);
              return s / static_cast<double>(v.size() - 1);
            },
            1e-5);
    }
  }
}

TEST_CASE("reductions give the same bits on one, two and three threads", "[reduce][threads]") {
  std::mt19937 gen(3);
  std::map<int, tensor<float, 1>> first;
  for (const auto& shape : {extents<4>{{30, 20, 17, 33}}, extents<4>{{1, 1, 700, 500}}, extents<4>{{300, 1, 1, 1001}},
                            extents<4>{{200000, 1, 1, 2}}}) {
    const auto x = random4(gen, shape);
    first.clear();
    for (int threads = 1; threads <= 3; ++threads) {
      set_num_threads(threads);
      int key = 0;
      const auto same = [&](const auto& t) {
        const auto flat = cast<float>(t.flatten());
        const tensor v = flat;
        if (threads == 1) first[key] = v;
        const auto& before = first[key++];
        REQUIRE(v.numel() == before.numel());
        CHECK(std::memcmp(v.data(), before.data(), static_cast<std::size_t>(v.numel()) * sizeof(float)) == 0);
      };
      for (unsigned reduced = 1; reduced < 16; ++reduced) {
        same(REDUCE(sum, x * 1.1f, reduced));
        same(REDUCE(logsumexp, x, reduced));
        same(REDUCE(argmin, x, reduced));
      }
      same(tensor(softmax(x, 3)));
      same(tensor(softmax(x, 0)));
      same(tensor(layer_norm(x)));
    }
  }
  set_num_threads(2);
}

TEST_CASE("long columns, few beside each other, fold as the rows of the transposed do", "[reduce]") {
  std::mt19937 gen(5);
  for (const auto& shape : {extents<4>{{1, 1, 70003, 2}}, {{3, 1, 5001, 3}}, {{2, 2, 4099, 17}}, {{1, 1, 3000, 32}}}) {
    const tensor<float, 4> x = random4(gen, shape);
    const tensor<double, 4> rows = cast<double>(x.transpose(2, 3).clone().contiguous());
    INFO(detail::shape_text(shape));
    for (const tensor<float, 3>& got : {tensor(sum(x, 2)), tensor(sum(x * 2, 2) / 2)})
      CHECK(eval(max(abs(cast<double>(got) - sum(rows, 3)))).item() < 1e-3);
    CHECK(eval(max(abs(sum(cast<double>(x), 2) - sum(rows, 3)))).item() < 1e-10);
    CHECK_FALSE(eval(any(cast<double>(max(x, 2)) != max(rows, 3))).item());
    CHECK_FALSE(eval(any(cast<double>(min(-x, 2)) != -max(rows, 3))).item());
    CHECK_FALSE(eval(any(cast<double>(prod(sign(x + 3.5f) * 1, 2)) != 1)).item());
  }
}

TEST_CASE("a matrix times a vector is the sum of products of each row", "[reduce]") {
  std::mt19937 gen(7);
  for (const index_t rows : {1, 3, 40, 700})
    for (const index_t columns : {0, 1, 17, 300}) {
      const tensor<float, 2> m = random4(gen, {{rows, columns, 1, 1}}).reshape({rows, columns});
      const tensor<float, 2> turned = m.transpose().clone();
      const tensor<float, 1> v = random4(gen, {{columns, 1, 1, 1}}).reshape({columns});
      const tensor y = mv(m, v), z = mv(turned.transpose(), v), w = mv(m + m, v * 0.5f);
      for (index_t i = 0; i < rows; ++i) {
        double expected = 0;
        for (index_t j = 0; j < columns; ++j) expected += static_cast<double>(m(i, j)) * static_cast<double>(v(j));
        CHECK(y(i) == Approx(expected).margin(1e-5));
        CHECK(z(i) == Approx(expected).margin(1e-5));
        CHECK(w(i) == Approx(expected).margin(1e-5));
      }
      if (rows == 1) CHECK(eval(dot(m.squeeze(0), v)).item() == Approx(y(0)).margin(1e-5));
    }
  CHECK(eval(dot(tensor<int, 1>{100000, 100000}, tensor<int, 1>{2, 3})).item() == 500000);
  CHECK_THROWS_WITH(mv(zeros<float>({2, 3}), zeros<float>({1})),
                    Catch::Contains("mv: shapes (2, 3) and (1,) do not fit"));
  CHECK_THROWS_AS(dot(zeros<float>({3}), zeros<float>({1})), shape_error);
  CHECK_THROWS_AS(dot(tensor<float, 1>(), zeros<float>({1})), shape_error);
}

TEST_CASE("sums over many elements stay accurate", "[reduce]") {
  const auto x = full<float>({16000000}, 0.1f);
  const double expected = 16e6 * static_cast<double>(0.1f);
  CHECK(eval(sum(x)).item() / expected == Approx(1).epsilon(1e-6));
  CHECK(eval(sum(x * 1.f)).item() / expected == Approx(1).epsilon(1e-6));
  CHECK(eval(mean(x)).item() / 0.1f == Approx(1).epsilon(1e-6));
  CHECK(tensor(sum(x.reshape({4, 4000000}), 1))(3) / (expected / 4) == Approx(1).epsilon(1e-6));
  CHECK(tensor(sum(x.reshape({4000000, 4}), 0))(3) / (expected / 4) == Approx(1).epsilon(1e-6));
  CHECK(tensor(sum(x.reshape({4000, 4000}).transpose(), 1))(7) / (expected / 4000) == Approx(1).epsilon(1e-6));
  CHECK(eval(norm(x)).item() / std::sqrt(16e6 * 0.01) == Approx(1).epsilon(1e-6));
  const tensor shifted = x + 1000;
  CHECK(eval(var(shifted)).item() < 1e-6f);
}

TEST_CASE("sums of many doubles along an axis stay accurate", "[reduce]") {
  const index_t n = 3000000;
  const auto x = eval(full<double>({n, 2}, 0.1));
  const tensor<double, 1> s = sum(x, 0);
  const double expected = static_cast<double>(n) * 0.1;
  for (const double got : s) CHECK(std::fabs(got - expected) <= 1e-14 * expected);
}

TEST_CASE("the mean of equal values is that value", "[reduce]") {
  for (index_t n = 1; n < 300; ++n) REQUIRE(eval(mean(full<double>({n}, 3.))).item() == 3);
}

TEST_CASE("integers and bool sum to int64 without overflow", "[reduce]") {
  const tensor a = sum(full<std::uint8_t>({100000}, 255));
  static_assert(std::is_same_v<decltype(a), const tensor<std::int64_t, 0>>);
  CHECK(a.item() == 25500000);
  CHECK(eval(sum(full<int>({3}, 2000000000))).item() == 6000000000);
  CHECK(eval(sum(arange<int>(100) > 89)).item() == 10);
  CHECK(eval(prod(full<std::int8_t>({5}, 100))).item() == 10000000000);
  CHECK(tensor(sum(full<bool>({20, 30}, true), 0))(29) == 20);
  CHECK(eval(max(tensor<std::int8_t, 1>{-128, 127})).item() == 127);
  CHECK(eval(min(full<std::uint8_t>({40}, 200))).item() == 200);
}

TEST_CASE("work after a reduction runs in its kernel, unless a derivative reads its bare result", "[reduce]") {
  std::mt19937 gen(5);
  const tensor x = random4(gen, {3, 700, 2, 17}).reshape({3, 1400, 17});
  const auto check = [&](const auto& fold, const auto& after) {
    static_assert(kernel_count<decltype(after(fold(x)))> == 1);
    const tensor made = fold(x);
    CHECK(same_bits(tensor(after(fold(x))), tensor(after(made))));
  };
  const auto more = [](auto&& y) { return std::forward<decltype(y)>(y) * 2 + 1; };
  for (const int axis : {0, 1, 2}) {
    check([=](const auto& v) { return sum(v, axis); }, more);
    check([=](const auto& v) { return max(v * 2.f, axis); }, more);
    check([=](const auto& v) { return min(v, axis); }, more);
    check([=](const auto& v) { return prod(v, axis); }, more);
    check([=](const auto& v) { return logsumexp(v, axis); }, more);
    check([=](const auto& v) { return argmax(v, axis); }, more);
    check([=](const auto& v) { return any(v > 1.99f, axis); }, [](auto&& y) { return !std::forward<decltype(y)>(y); });
  }
  check([](const auto& v) { return max(v); }, more);
  static_assert(kernel_count<decltype(max(variable<float, 2>(), 1) + 1.f)> == 2);
  static_assert(kernel_count<decltype(sum(variable<float, 2>(), 1) + 1.f)> == 1);
}

TEST_CASE("axes out of range, repeated or reduced to nothing are rejected", "[reduce]") {
  const auto x = zeros<float>({3, 4});
  CHECK_THROWS_AS(sum(x, 2), index_error);
  CHECK_THROWS_AS(sum(x, -3), index_error);
  CHECK_THROWS_AS(sum(x, {0, 0}), index_error);
  CHECK_THROWS_AS(sum(x, {1, -1}), index_error);
  const auto none = zeros<float>({3, 0});
  CHECK_THROWS_WITH(max(none, 1), Catch::Contains("max") && Catch::Contains("(3, 0)"));
  CHECK_THROWS_AS(argmin(none), shape_error);
  CHECK(tensor(max(none, 0)).numel() == 0);
  CHECK(tensor(sum(none, 1))(2) == 0);
  CHECK(tensor(prod(none, 1))(2) == 1);
  CHECK(std::isnan(tensor(mean(none, 1))(0)));
  CHECK(std::isnan(tensor(var(zeros<float>({3, 1}), 1))(0)));
  CHECK(eval(logsumexp(none)).item() == -std::numeric_limits<float>::infinity());
  CHECK(eval(any(none > 0)).item() == false);
  CHECK(eval(all(none > 0)).item() == true);
}
