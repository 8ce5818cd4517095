// tests/random/create_test.cpp: random tensors: ranges, moments, the same numbers whatever the device and threads.
#include "../catch.hpp"

#include <cmath>
#include <vector>

#include <sinter/sinter.hpp>

#include "../same_bits.hpp"

using namespace sinter;

namespace {

template <class T>
double mean_of(const tensor<T, 1>& x) {
  double sum = 0;
  for (T v : x) sum += static_cast<double>(v);
  return sum / static_cast<double>(x.numel());
}

}  // namespace

TEMPLATE_TEST_CASE("rand is uniform in [0, 1)", "", float, double) {
  generator gen(1);
  const tensor x = rand<TestType>(gen, {100003});
  double squares = 0;
  for (TestType v : x) {
    REQUIRE(v >= 0);
    REQUIRE(v < 1);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  CHECK(mean_of(x) == Approx(0.5).margin(0.004));
  CHECK(squares / 100003 == Approx(1.0 / 3).margin(0.004));
}

TEST_CASE("rand takes its bits from the top of Philox's words") {
  generator gen(42);
  const tensor x = rand<float>(gen, {9});
  const tensor y = rand<double>(gen, {3});
  for (int i = 0; i < 9; ++i) {
    const std::uint32_t w = philox4x32(random_key{42, 0}, static_cast<std::uint64_t>(i / 4)).word[i % 4];
    CHECK(x(i) == std::ldexp(static_cast<float>(w >> 8), -24));
  }
  const auto b = philox4x32(random_key{42, 1}, 0);
  CHECK(y(1) == std::ldexp(static_cast<double>((std::uint64_t{b.word[3]} << 32 | b.word[2]) >> 11), -53));
}

TEMPLATE_TEST_CASE("randn has the moments of the normal distribution and is finite", "", float, double) {
  generator gen(2);
  const tensor x = randn<TestType>(gen, {200001});
  double m1 = 0, m2 = 0, m3 = 0, m4 = 0;
  for (TestType v : x) {
    REQUIRE(std::isfinite(v));
    const double d = static_cast<double>(v);
    m1 += d, m2 += d * d, m3 += d * d * d, m4 += d * d * d * d;
  }
  const double n = 200001;
  CHECK(m1 / n == Approx(0).margin(0.01));
  CHECK(m2 / n == Approx(1).margin(0.02));
  CHECK(m3 / n == Approx(0).margin(0.04));
  CHECK(m4 / n == Approx(3).margin(0.1));
}

TEST_CASE("the extreme words give finite normals") {
  std::uint32_t words[] = {0, 0, ~0u, ~0u, 0, ~0u, ~0u, 0};
  for (int i = 0; i < 4; ++i) CHECK(std::isfinite(detail::normal_numbers<float>{}.make<float, 1>(words + 2 * i)));
  for (int i = 0; i < 2; ++i) CHECK(std::isfinite(detail::normal_numbers<double>{}.make<double, 1>(words + 4 * i)));
}

TEST_CASE("numbers do not depend on device, threads or length") {
  const int threads = num_threads();
  generator a(3), b(3), c(3);
  set_num_threads(1);
  const tensor x = rand<float>(a, {300, 701});
  const tensor u = randn<float>(a, {300, 701});
  set_num_threads(3);
  const tensor y = rand<float>(b, {300, 701});
  const tensor v = randn<float>(b, {300, 701});
  set_num_threads(threads);
  const tensor z = rand<float, numa<1>>(c, {300, 701});
  CHECK(same_bits(x, y));
  CHECK(same_bits(u, v));
  CHECK(same_bits(x, z));
  generator d(3);
  CHECK(same_bits(rand<float>(d, {7}), x.flatten().slice(0, 0, 7).clone()));
}

TEST_CASE("draws differ from one another, seeds too") {
  generator gen(4), other(5);
  const tensor x = rand<float>(gen, {1000});
  const tensor y = rand<float>(gen, {1000});
  const tensor z = rand<float>(other, {1000});
  int equal = 0;
  for (int i = 0; i < 1000; ++i) equal += (x(i) == y(i)) + (x(i) == z(i)) + (y(i) == z(i));
  CHECK(equal < 3);
}

TEST_CASE("randint covers its range evenly and nothing else") {
  generator gen(6);
  const tensor x = randint(gen, -3, 4, {70000});
  std::vector<int> count(7);
  for (std::int64_t v : x) {
    REQUIRE(v >= -3);
    REQUIRE(v < 4);
    ++count[static_cast<std::size_t>(v + 3)];
  }
  for (int c : count) CHECK(c == Approx(10000).margin(400));
  const tensor bytes = randint<std::uint8_t>(gen, 0, 256, {10000});
  CHECK(*std::max_element(bytes.begin(), bytes.end()) == 255);
  CHECK(*std::min_element(bytes.begin(), bytes.end()) == 0);
  const tensor one = randint<std::int8_t>(gen, -128, -127, {10});
  CHECK(one(9) == -128);
  using limits = std::numeric_limits<std::int64_t>;
  const tensor wide = randint(gen, limits::min(), limits::max(), {1000});
  int negative = 0;
  for (std::int64_t v : wide) negative += v < 0;
  CHECK(negative == Approx(500).margin(80));
}

TEST_CASE("bernoulli is true as often as asked") {
  generator gen(7);
  const tensor x = bernoulli(gen, 0.3, {100000});
  int yes = 0;
  for (bool b : x) yes += b;
  CHECK(yes == Approx(30000).margin(700));
  for (bool b : bernoulli(gen, 0, {100})) CHECK_FALSE(b);
  for (float b : bernoulli<float>(gen, 1, {100})) CHECK(b == 1.f);
}

TEST_CASE("uniform and normal have the parameters asked for") {
  generator gen(8);
  const tensor x = uniform<double>(gen, -2, 6, {50000});
  for (double v : x) REQUIRE((v >= -2 && v <= 6));
  CHECK(mean_of(x) == Approx(2).margin(0.05));
  CHECK(mean_of(normal<float>(gen, 10, 2, {50000})) == Approx(10).margin(0.05));
  CHECK(normal<float>(gen, 3, 0, {5})(4) == 3.f);
}

TEST_CASE("randperm is a permutation, and every order of three is as likely") {
  generator gen(9);
  const tensor p = randperm(gen, 1000);
  std::vector<bool> seen(1000);
  for (std::int64_t i : p) seen.at(static_cast<std::size_t>(i)) = true;
  for (bool s : seen) CHECK(s);
  int orders[3][3] = {};
  for (int i = 0; i < 6000; ++i) {
    const tensor q = randperm<std::int32_t>(gen, 3);
    ++orders[q(0)][q(1)];
  }
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (i != j) CHECK(orders[i][j] == Approx(1000).margin(130));
  CHECK(randperm(gen, 0).numel() == 0);
}

TEST_CASE("empty shapes, scalars and *_like work") {
  generator gen(10);
  CHECK(rand<float>(gen, {0, 3}).numel() == 0);
  CHECK(rand<float>(gen, extents<0>{}).item() < 1.f);
  const auto like = randn_like(gen, zeros<double, numa<0>>({2, 2}));
  static_assert(std::is_same_v<decltype(like), const tensor<double, 2, numa<0>>>);
  CHECK(like.shape() == extents<2>{{2, 2}});
}

TEST_CASE("parameters that make no sense are value errors") {
  generator gen;
  CHECK_THROWS_AS(bernoulli(gen, 1.5, {2}), value_error);
  CHECK_THROWS_AS(bernoulli(gen, std::nan(""), {2}), value_error);
  CHECK_THROWS_AS(randint(gen, 3, 3, {2}), value_error);
  CHECK_THROWS_WITH(randint<std::uint8_t>(gen, 0, 257, {2}),
                    Catch::Contains("randint: 256 does not fit elements of type uint8"));
  CHECK_THROWS_AS(randint<std::uint8_t>(gen, -1, 5, {2}), value_error);
  CHECK_THROWS_AS(uniform<float>(gen, 1, 0, {2}), value_error);
  CHECK_THROWS_AS(uniform<float>(gen, 0, INFINITY, {2}), value_error);
  CHECK_THROWS_AS(uniform<float>(gen, -3e38f, 3e38f, {2}), value_error);
  CHECK_THROWS_AS(uniform<double>(gen, -1.7e308, 1.7e308, {2}), value_error);
  CHECK_THROWS_AS(normal<float>(gen, 0, -1, {2}), value_error);
  CHECK_THROWS_AS(randperm(gen, -1), value_error);
  CHECK_THROWS_AS(randperm<std::int8_t>(gen, 129), value_error);
  CHECK_NOTHROW(randperm<std::int8_t>(gen, 128));
  CHECK_THROWS_AS(rand<float>(gen, {-1}), shape_error);
  CHECK(gen.offset() == 1);  // a draw that fails takes no number
}
