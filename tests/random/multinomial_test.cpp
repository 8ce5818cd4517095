// tests/random/multinomial_test.cpp: categories drawn by their probabilities.
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

TEST_CASE("multinomial draws categories as often as their weights say", "[random]") {
  generator gen(1);
  const tensor<float, 2> weights{{1, 0, 3, 4}, {0, 2, 0, 0}};
  const tensor drawn = multinomial(gen, weights, 20000, true);
  CHECK(drawn.shape() == extents<2>{{2, 20000}});
  const tensor counts = bincount(drawn[0], 4);
  CHECK(counts(1) == 0);
  CHECK(std::abs(static_cast<double>(counts(0)) / 20000 - 0.125) < 0.01);
  CHECK(std::abs(static_cast<double>(counts(2)) / 20000 - 0.375) < 0.01);
  CHECK(eval(all(drawn[1] == std::int64_t{1})).item());
}

TEST_CASE("multinomial without replacement draws each category once", "[random]") {
  generator gen(2);
  const tensor<double, 1> weights{5, 1, 1, 0, 1};
  int first = 0;
  for (int i = 0; i < 400; ++i) {
    const tensor drawn = multinomial(gen, weights, 4);
    first += drawn(0) == 0 ? 1 : 0;
    const tensor counts = bincount(drawn, 5);
    CHECK((counts(0) == 1 && counts(1) == 1 && counts(2) == 1 && counts(3) == 0 && counts(4) == 1));
  }
  CHECK(std::abs(first / 400.0 - 0.625) < 0.08);
}

TEST_CASE("multinomial draws the same on every device, and nothing where nothing is asked for", "[random]") {
  generator one(3), two(3);
  const tensor<float, 2> weights = rand<float>(one, {5, 7});
  const tensor same = rand<float>(two, {5, 7});
  const tensor a = multinomial(one, weights, 3), b = multinomial(two, same.to<numa<0>>(), 3).to<cpu>();
  CHECK(eval(all(a == b)).item());
  CHECK(multinomial(one, weights, 0).shape() == extents<2>{{5, 0}});
  CHECK(multinomial(one, zeros<float>({0, 7}), 2).shape() == extents<2>{{0, 2}});
}

TEST_CASE("multinomial refuses what is no distribution", "[random]") {
  using Catch::Contains;
  generator gen(4);
  CHECK_THROWS_WITH(multinomial(gen, tensor<float, 1>{1, -1}, 1), Contains("a weight is negative, infinite or NaN"));
  CHECK_THROWS_WITH(multinomial(gen, tensor<float, 1>{1, INFINITY}, 1), Contains("infinite"));
  CHECK_THROWS_WITH(multinomial(gen, tensor<float, 1>{1, NAN}, 1), Contains("NaN"));
  CHECK_THROWS_WITH(multinomial(gen, tensor<float, 1>{0, 0}, 1, true), Contains("need 1 categories"));
  CHECK_THROWS_WITH(multinomial(gen, tensor<float, 1>{1, 0}, 2), Contains("2 draws without replacement"));
}
