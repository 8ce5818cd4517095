// tests/data/augment_test.cpp: random crops and flips of batches of images, against windows and masks drawn alike.
#include "../catch.hpp"

#include <set>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

template <class T = float>
tensor<T, 4> numbered(index_t n, index_t c, index_t h, index_t w) {
  return eval(cast<T>(arange<std::int32_t>(1, n * c * h * w + 1))).reshape({n, c, h, w});
}

/// The pixel of a padded image.
template <class T>
T padded(const tensor<T, 4>& x, index_t i, index_t c, index_t y, index_t x_place) {
  const bool inside = y >= 0 && y < x.extent(2) && x_place >= 0 && x_place < x.extent(3);
  return inside ? x(i, c, y, x_place) : T(0);
}

template <class T>
void check_crop(const tensor<T, 4>& x, index_t height, index_t width, index_t padding) {
  generator gen(5), same(5);
  const tensor<T, 4> y = random_crop(gen, x, {height, width}, {.padding = padding});
  REQUIRE(y.shape() == extents<4>{{x.extent(0), x.extent(1), height, width}});
  const tensor tops = randint<index_t>(same, 0, x.extent(2) + 2 * padding - height + 1, {x.extent(0)});
  const tensor lefts = randint<index_t>(same, 0, x.extent(3) + 2 * padding - width + 1, {x.extent(0)});
  CHECK(gen.offset() == same.offset());
  index_t wrong = 0;
  for (index_t i = 0; i < y.extent(0); ++i)
    for (index_t c = 0; c < y.extent(1); ++c)
      for (index_t r = 0; r < height; ++r)
        for (index_t s = 0; s < width; ++s)
          wrong += y(i, c, r, s) != padded(x, i, c, tops(i) + r - padding, lefts(i) + s - padding);
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("random_crop takes a window of each image at the place that the generator draws") {
  check_crop(numbered(64, 3, 8, 8), 8, 8, 4);
  check_crop(numbered(20, 2, 5, 7), 3, 4, 0);
  check_crop(numbered(20, 1, 3, 2), 5, 1, 1);
  check_crop(numbered(20, 1, 2, 3), 1, 2, 5);  // windows in the padding alone
  check_crop(numbered<std::uint8_t>(4, 3, 4, 4), 4, 4, 2);
  check_crop(numbered(2, 3, 4, 4), 4, 4, 0);  // the images themselves
  check_crop(numbered(0, 3, 4, 4), 4, 4, 1);
  check_crop(tensor<float, 4>(numbered(2, 4, 4, 3).permute({0, 3, 1, 2})), 4, 4, 1);  // not dense
}

TEST_CASE("random_crop meets every place, and another one for the same image at the next draw") {
  generator gen(1);
  const tensor<float, 4> x = zeros<float>({1000, 1, 3, 3}) + numbered(1, 1, 3, 3);
  const tensor y = random_crop(gen, x, {3, 3}, {.padding = 1});
  std::set<float> corners;
  for (index_t i = 0; i < 1000; ++i) corners.insert(y(i, 0, 1, 1));
  CHECK(corners.size() == 9);
  CHECK(any(random_crop(gen, x, {3, 3}, {.padding = 1}) != y).item());
}

TEST_CASE("random_horizontal_flip mirrors the images that the generator draws") {
  const tensor x = numbered(200, 3, 4, 5);
  generator gen(9), same(9);
  const tensor y = random_horizontal_flip(gen, x);
  const tensor flips = bernoulli<bool>(same, 0.5, {200});
  CHECK(gen.offset() == same.offset());
  index_t wrong = 0, flipped = 0;
  for (index_t i = 0; i < 200; ++i) {
    flipped += flips(i);
    for (index_t c = 0; c < 3; ++c)
      for (index_t r = 0; r < 4; ++r)
        for (index_t s = 0; s < 5; ++s) wrong += y(i, c, r, s) != x(i, c, r, flips(i) ? 4 - s : s);
  }
  CHECK(wrong == 0);
  CHECK(flipped > 70);
  CHECK(flipped < 130);
  CHECK(all(random_horizontal_flip(gen, x, 0) == x).item());
  const tensor twice = random_horizontal_flip(gen, random_horizontal_flip(gen, x, 1), 1);
  CHECK(all(twice == x).item());
}

TEST_CASE("crops and flips that make no sense are refused") {
  generator gen(1);
  const tensor x = numbered(2, 3, 4, 4);
  CHECK_THROWS_WITH(random_crop(gen, x, {6, 5}),
                    Contains("random_crop: a window of 6 by 5 in images of shape (2, 3, 4, 4)"));
  CHECK_THROWS_AS(random_crop(gen, x, {4, 7}, {.padding = 1}), shape_error);
  CHECK_THROWS_WITH(random_crop(gen, x, {4, 4}, {.padding = -1}), Contains("a padding of -1"));
  CHECK_THROWS_AS(random_crop(gen, x, {0, 4}), value_error);
  CHECK_THROWS_AS(random_crop(gen, x, {4, 4}, {.padding = std::numeric_limits<index_t>::max()}), value_error);
  CHECK_THROWS_WITH(random_horizontal_flip(gen, x, 1.5), Contains("must be in [0, 1], not 1.5"));
  CHECK_THROWS_AS(random_horizontal_flip(gen, tensor<float, 4>()), value_error);
  CHECK_THROWS_AS(random_crop(gen, tensor<float, 4>(), {4, 4}), value_error);
  CHECK(gen.offset() == 0);  // nothing was drawn
}
