// tests/core/shape_test.cpp: the laws of shapes, broadcasting and axis numbers.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <limits>
#include <random>

using namespace sinter;
using sinter::detail::broadcast_shapes;

namespace {

extents<3> random_shape(std::mt19937& gen) {
  extents<3> s;
  for (index_t& e : s) e = static_cast<index_t>(gen() % 3) + (gen() % 4 == 0 ? 0 : 1);
  return s;
}

}  // namespace

static_assert(extents<0>{}.numel() == 1);
static_assert(extents<2>{{3, 0}}.numel() == 0);
static_assert(extents<3>{{2, 3, 4}}.numel() == 24);
static_assert(sinter::detail::row_major_strides(extents<3>{{2, 3, 4}}) == extents<3>{{12, 4, 1}});

TEST_CASE("broadcasting commutes, is idempotent, and has the scalar as neutral element", "[shape]") {
  std::mt19937 gen(1);
  int merged = 0;
  for (int trial = 0; trial < 500; ++trial) {
    const auto a = random_shape(gen), b = random_shape(gen);
    CHECK(broadcast_shapes("test", a, a) == a);
    CHECK(broadcast_shapes("test", a, extents<0>{}) == a);
    CHECK(broadcast_shapes("test", extents<1>{{1}}, a) == a);
    try {
      const auto ab = broadcast_shapes("test", a, b);
      ++merged;
      CHECK(ab == broadcast_shapes("test", b, a));
      CHECK(ab == broadcast_shapes("test", ab, a));
      for (int d = 0; d < 3; ++d) CHECK(((a[d] == ab[d] || a[d] == 1) && (b[d] == ab[d] || b[d] == 1)));
    } catch (const shape_error&) {
      CHECK_THROWS_AS(broadcast_shapes("test", b, a), shape_error);
      bool clash = false;
      for (int d = 0; d < 3; ++d) clash = clash || (a[d] != b[d] && a[d] != 1 && b[d] != 1);
      CHECK(clash);
    }
  }
  CHECK(merged > 50);
  CHECK(merged < 450);
}

TEST_CASE("broadcasting is associative", "[shape]") {
  std::mt19937 gen(2);
  const auto merge = [](const extents<3>& a, const extents<3>& b, const extents<3>& c, bool left, extents<3>& out) {
    try {
      out = left ? broadcast_shapes("t", broadcast_shapes("t", a, b), c)
                 : broadcast_shapes("t", a, broadcast_shapes("t", b, c));
      return true;
    } catch (const shape_error&) {
      return false;
    }
  };
  for (int trial = 0; trial < 300; ++trial) {
    const auto a = random_shape(gen), b = random_shape(gen), c = random_shape(gen);
    extents<3> left, right;
    const bool fits = merge(a, b, c, true, left);
    REQUIRE(fits == merge(a, b, c, false, right));
    if (fits) CHECK(left == right);
  }
}

TEST_CASE("a broadcasting error names the operation and both shapes", "[shape]") {
  const auto a = zeros<float>({2, 3}), b = zeros<float>({4, 3});
  CHECK_THROWS_WITH(a + b, Catch::Contains("add") && Catch::Contains("(2, 3)") && Catch::Contains("(4, 3)"));
  CHECK_THROWS_AS(a + zeros<float>({2}), shape_error);
}

TEST_CASE("negative axes count from the end and others are rejected", "[shape]") {
  using sinter::detail::checked_axis;
  for (int rank = 1; rank <= max_rank; ++rank)
    for (int a = 0; a < rank; ++a) {
      CHECK(checked_axis("t", a, rank) == a);
      CHECK(checked_axis("t", a - rank, rank) == a);
    }
  CHECK_THROWS_AS(checked_axis("t", 2, 2), index_error);
  CHECK_THROWS_AS(checked_axis("t", -3, 2), index_error);
  CHECK_THROWS_AS(checked_axis("t", 0, 0), index_error);
  CHECK_THROWS_AS(checked_axis("t", std::numeric_limits<index_t>::min(), 2), index_error);
  CHECK_THROWS_AS(checked_axis("t", std::numeric_limits<index_t>::max(), 2), index_error);
}

TEST_CASE("sizes that overflow are refused before anything is allocated", "[shape]") {
  const index_t big = index_t{1} << 40, max = std::numeric_limits<index_t>::max();
  const auto before = memory().allocations;
  CHECK_THROWS_AS(zeros<float>({big, big}), shape_error);
  CHECK_THROWS_AS(zeros<double>({max}), shape_error);
  CHECK_THROWS_AS(empty<float>({max, max, max, max}), shape_error);
  CHECK_THROWS_AS(zeros<float>({-1, 3}), shape_error);
  CHECK_THROWS_AS(zeros<float>({-1, 0}), shape_error);
  CHECK(memory().allocations == before);
  CHECK(zeros<float>({max, 0, max}).numel() == 0);
}

TEST_CASE("views may not show more elements than can be counted", "[shape]") {
  const index_t half = index_t{1} << 32;
  const tensor a = full<float>(1.f).broadcast_to({half, 1}), b = full<float>(1.f).broadcast_to({1, half});
  CHECK_THROWS_WITH(a * b,
                    Catch::Contains("multiply: shape (4294967296, 4294967296) has more elements than can be counted"));
  CHECK_THROWS_AS(full<float>(1.f).broadcast_to({half, half}), shape_error);
  const tensor none = zeros<float>({0, half, half});  // beside an extent of 0 any other will do
  CHECK(none.numel() == 0);
  CHECK(eval(none * 2.f).numel() == 0);
}

TEST_CASE("messages show numbers with as few digits as tell them apart", "[shape]") {
  using detail::joined;
  CHECK(joined({0.1f, " ", 0.1, " ", 1.0000001, " ", 2147483648.0, " ", -INFINITY, " ", NAN}) ==
        "0.1 0.1 1.0000001 2147483648 -inf nan");
  CHECK(joined({'x', 7, -7L, ~std::uint64_t{0}, true, std::string("y")}) == "x7-7184467440737095516151y");
  CHECK(joined({extents<0>{}, extents<1>{{3}}, extents<2>{{3, 4}}}) == "()(3,)(3, 4)");
}

TEST_CASE("reshape and broadcast_to refuse products that wrap around and negative extents", "[shape]") {
  const index_t half = index_t{1} << 32, max = std::numeric_limits<index_t>::max();
  CHECK_THROWS_AS(zeros<float>({0}).reshape({half, half}), shape_error);
  CHECK_THROWS_AS(zeros<float>({4}).reshape({half, half, -1}), shape_error);
  CHECK_THROWS_AS(zeros<float>({4}).reshape({max, max}), shape_error);
  CHECK_THROWS_AS(ones<float>({1}).broadcast_to({-1}), shape_error);
  CHECK_THROWS_AS(ones<float>({3}).broadcast_to({-2, 3}), shape_error);
  CHECK_THROWS_AS(ones<float>().broadcast_to({half, half, half}), shape_error);
}

TEST_CASE("element types and devices have readable names", "[shape]") {
  CHECK(std::string(element_name<float>()) == "float");
  CHECK(std::string(element_name<std::uint8_t>()) == "uint8");
  CHECK(device_name<cpu>() == "cpu");
  CHECK(device_name<numa<1>>() == "numa:1");
  CHECK(device_name<cuda<0>>() == "cuda:0");
  CHECK(available<cpu>());
  CHECK(available<numa<3>>());
}
