// tests/scan/unique_test.cpp: unique, bincount and histc: values, limits, errors.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

using namespace sinter;

namespace {

template <class T>
tensor<T, 1> few_values(index_t n, int different, unsigned seed) {
  std::mt19937 gen(seed);
  auto x = empty<T>({n});
  for (T& v : x) v = static_cast<T>(static_cast<double>(gen() % static_cast<unsigned>(different)) - 3);
  return x;
}

}  // namespace

TEST_CASE("unique gives each value once, where it went and how often it occurred", "[unique]") {
  for (const index_t n : {0, 1, 2, 300, 70001}) {
    const auto x = few_values<float>(n, 40, 1);
    std::map<float, index_t> expected;
    for (const float v : x) ++expected[v];
    const auto [values, inverse, counts] = unique(x);
    REQUIRE(values.numel() == static_cast<index_t>(expected.size()));
    index_t i = 0;
    for (const auto& [v, count] : expected) {
      CHECK(values(i) == v);
      CHECK(counts(i++) == count);
    }
    CHECK_FALSE(eval(any(index_select(values, 0, inverse) != x)).item());
  }
}

TEST_CASE("unique of any shape, of masks, of expressions, of -0 and NaN", "[unique]") {
  const tensor<int, 2> x{{5, 3, 5}, {9, 9, 3}};
  const auto all = unique(x.transpose() * 2);
  CHECK(to_string(all.values) == to_string(tensor<int, 1>{6, 10, 18}));
  CHECK(all.inverse.shape() == extents<2>{{3, 2}});
  CHECK(all.inverse(2, 0) == 1);
  CHECK(unique(x > 4).counts(0) == 2);
  const float nan_value = std::numeric_limits<float>::quiet_NaN();
  const auto odd = unique(tensor<float, 1>{3, nan_value, -0.f, 0.f, nan_value, 1});
  CHECK(odd.values.numel() == 5);
  CHECK((odd.values(0) == 0 && std::signbit(odd.values(0)) && odd.counts(0) == 2));
  CHECK(std::isnan(odd.values(4)));
  CHECK(to_string(odd.inverse) == to_string(tensor<std::int64_t, 1>{2, 3, 0, 0, 4, 1}));
}

TEST_CASE("bincount counts any integers, in tasks of their own", "[bincount]") {
  for (const index_t n : {0, 1, 50, 500000})
    for (const index_t minlength : {0, 3, 100}) {
      const auto x = eval(cast<std::uint8_t>(few_values<int>(n, 20, 2) + 3));
      std::vector<std::int64_t> expected(static_cast<std::size_t>(minlength));
      for (const std::uint8_t v : x) {
        if (v >= expected.size()) expected.resize(v + std::size_t{1});
        ++expected[v];
      }
      const tensor counts = bincount(x, minlength);
      CHECK(std::vector<std::int64_t>(counts.begin(), counts.end()) == expected);
    }
  CHECK(bincount(tensor<int, 1>{1, 3, 1} * 2).numel() == 7);
  CHECK_THROWS_WITH(bincount(tensor<int, 1>{1, -3}), Catch::Contains("element -3 is negative"));
  CHECK_THROWS_AS(bincount(tensor<int, 1>{1}, -1), value_error);
  CHECK_THROWS_WITH(bincount(tensor<std::int64_t, 1>{std::numeric_limits<std::int64_t>::max()}),
                    Catch::Contains("bincount: element 9223372036854775807"));
}

TEST_CASE("histc counts both ends in and all else out", "[histc]") {
  const float inf = std::numeric_limits<float>::infinity(), nan_value = std::numeric_limits<float>::quiet_NaN();
  const auto text = [](const tensor<float, 1>& x) { return to_string(x); };
  const tensor<float, 1> x{1, 2, 2.5f, nan_value, 3, -1, 7, inf, -inf};
  CHECK(text(histc(x, 4, 0, 3)) == text({0, 1, 1, 2}));
  CHECK(text(histc(x * 2 - 1, 3, 0, 3)) == text({0, 1, 1}));
  CHECK(text(histc(tensor<float, 2>{{1, 2}, {5, 1}}, 4)) == text({2, 1, 0, 1}));
  CHECK(text(histc(tensor<float, 1>{2, 2}, 3)) == text({0, 2, 0}));
  CHECK(text(histc(zeros<float>({0}), 2)) == text({0, 0}));
  CHECK(text(histc(full<float>({200000}, 0.5f), 2, 0, 1)) == text({0, 200000}));
  const variable v = tensor<float, 1>{1, 2};
  CHECK(text(histc(exp(v), 1, 0, 3)) == text({1}));
  CHECK_THROWS_WITH(histc(x, 3), Catch::Contains("histc: the range"));
  CHECK_THROWS_AS(histc(x, 3, 2, 1), value_error);
  CHECK_THROWS_AS(histc(x, 3, 0, inf), value_error);
  CHECK_THROWS_AS(histc(x, 0, 0, 1), value_error);
}
