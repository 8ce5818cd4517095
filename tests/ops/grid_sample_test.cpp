// tests/ops/grid_sample_test.cpp: images read at the places of a grid, and grids of affine maps.
#include "../grad/differences.hpp"
#include "../kernels/sampling.hpp"

#include <limits>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

const interpolation modes[] = {interpolation::nearest, interpolation::bilinear, interpolation::bicubic};
const grid_padding paddings[] = {grid_padding::zeros, grid_padding::border, grid_padding::reflection};

/// f(options) for all options that images have, or volumes.
template <class F>
void each_option(bool volumes, const F& f) {
  for (const interpolation mode : modes)
    for (const grid_padding padding : paddings)
      for (const bool corners : {false, true})
        if (!volumes || mode != interpolation::bicubic) f(grid_sample_options{mode, padding, corners});
}

template <int R>
tensor<double, R> numbers(std::mt19937& gen, const extents<R>& shape, double size) {
  return differences::random(gen, shape, -size, size);
}

}  // namespace

TEST_CASE("grid_sample reads between elements and outside as its options say") {
  std::mt19937 gen(1);
  const auto x = numbers<4>(gen, {{2, 3, 4, 1}}, 1), wide = numbers<4>(gen, {{2, 9, 5, 6}}, 1);
  const auto grid = numbers<4>(gen, {{2, 9, 8, 2}}, 5);
  const auto volume = numbers<5>(gen, {{1, 2, 3, 4, 2}}, 1), places = numbers<5>(gen, {{1, 2, 3, 5, 3}}, 3);
  const auto check = [](const auto& got, const auto& expected) {
    REQUIRE(got.shape() == expected.shape());
    CHECK(eval(max(abs(got - expected))).item() < 1e-12);
  };
  each_option(false, [&](const grid_sample_options& o) {
    check(eval(grid_sample(x, grid, o)), kernel_table::sampled<4>(x, grid, o));
    check(eval(grid_sample(wide, grid, o)), kernel_table::sampled<4>(wide, grid, o));
    check(eval(grid_sample(wide.to_memory_format(memory_format::channels_last), grid, o)),
          kernel_table::sampled<4>(wide, grid, o));
  });
  each_option(true, [&](const grid_sample_options& o) {
    check(eval(grid_sample(volume, places, o)), kernel_table::sampled<5>(volume, places, o));
  });
}

TEST_CASE("gradients of grid_sample go to the image and to the grid") {
  std::mt19937 gen(2);
  const auto x = numbers<4>(gen, {{2, 2, 4, 5}}, 1), grid = numbers<4>(gen, {{2, 3, 2, 2}}, 2.3);
  const auto volume = numbers<5>(gen, {{1, 2, 3, 4, 2}}, 1), places = numbers<5>(gen, {{1, 2, 2, 2, 3}}, 2.3);
  each_option(false, [&](const grid_sample_options& o) {
    differences::check([&](const auto& a, const auto& b) { return grid_sample(a, b, o); }, 12, x, grid);
  });
  each_option(true, [&](const grid_sample_options& o) {
    differences::check([&](const auto& a, const auto& b) { return grid_sample(a, b, o); }, 8, volume, places);
  });
  // Both operands gather what several uses add.
  differences::check([](const auto& a, const auto& b) { return grid_sample(a, b) * grid_sample(a * a, b); }, 12, x,
                     grid);
}

TEST_CASE("places that are no numbers, or far away, are outside") {
  const float nothing = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const tensor<float, 4> x = tensor<float, 2>{{1, 2}, {3, 4}}.reshape({1, 1, 2, 2});
  const tensor<float, 4> grid =
      tensor<float, 2>{{nothing, 0}, {infinity, 0}, {1e30F, -1}, {-1e30F, 1}}.reshape({1, 1, 4, 2});
  for (const interpolation mode : modes) {
    const tensor y = grid_sample(x, grid, {.mode = mode});
    for (index_t i = 0; i < 4; ++i) CHECK(y(0, 0, 0, i) == 0);
  }
  const tensor y = grid_sample(x, grid, {.padding_mode = grid_padding::border, .align_corners = true});
  CHECK((y(0, 0, 0, 0) == 2 && y(0, 0, 0, 1) == 3 && y(0, 0, 0, 2) == 2 && y(0, 0, 0, 3) == 3));
  // What counts nothing does not spread: an infinite element beside the place that is read.
  const tensor<float, 4> wild = tensor<float, 2>{{1, infinity}}.reshape({1, 1, 1, 2});
  const tensor<float, 4> at_first = tensor<float, 2>{{-1.5F, 0}}.reshape({1, 1, 1, 2});
  CHECK(eval(grid_sample(wild, at_first))(0, 0, 0, 0) == 0);
}

TEST_CASE("grid_sample takes empty grids and batches, and half with sums in float") {
  CHECK(eval(grid_sample(ones<float>({0, 3, 4, 4}), ones<float>({0, 2, 2, 2}))).shape() == extents<4>{{0, 3, 2, 2}});
  const variable<float, 4> x(ones<float>({1, 2, 3, 3})), none(ones<float>({1, 0, 5, 2}));
  const variable y = grid_sample(x, none);
  CHECK(y.shape() == extents<4>{{1, 2, 0, 5}});
  sum(y).backward();
  CHECK(x.grad()(0, 1, 2, 2) == 0);
  // 4096 places of one element: half counts up to 2048 alone.
  const variable<half, 4> image(ones<half>({1, 1, 1, 1}));
  const variable read = grid_sample(image, zeros<half>({1, 64, 64, 2}));
  read.backward(ones<half>({1, 1, 64, 64}));
  CHECK(static_cast<float>(image.grad()(0, 0, 0, 0)) == 4096);
}

TEST_CASE("grid_sample refuses grids and modes that do not fit") {
  const auto x = ones<float>({2, 3, 4, 5});
  CHECK_THROWS_WITH(grid_sample(x, ones<float>({1, 2, 2, 2})),
                    "grid_sample: a grid of shape (1, 2, 2, 2) for x of shape (2, 3, 4, 5); its first extent must be "
                    "that of x, and its last one 2");
  CHECK_THROWS_AS(grid_sample(x, ones<float>({2, 2, 2, 3})), shape_error);
  CHECK_THROWS_WITH(grid_sample(ones<float>({1, 1, 0, 2}), ones<float>({1, 1, 1, 2})),
                    "grid_sample: x of shape (1, 1, 0, 2) has no elements on axis 2");
  CHECK_THROWS_WITH(grid_sample(x, ones<float>({2, 2, 2, 2}), {.mode = interpolation::trilinear}),
                    "grid_sample: this mode is for interpolate alone; take nearest, bilinear or bicubic");
  CHECK_THROWS_WITH(
      grid_sample(ones<float>({1, 1, 2, 2, 2}), ones<float>({1, 1, 1, 1, 3}), {.mode = interpolation::bicubic}),
      "grid_sample: bicubic is for images (N,C,H,W); x has shape (1, 1, 2, 2, 2)");
}

TEST_CASE("affine_grid gives the places that a map reads") {
  const tensor<float, 3> theta = tensor<float, 2>{{2, 0, 1}, {0, 3, -1}}.reshape({1, 2, 3});
  const tensor edges = affine_grid(theta, {1, 1, 2, 3}, true), middles = affine_grid(theta, {1, 1, 2, 3});
  CHECK(edges.shape() == extents<4>{{1, 2, 3, 2}});
  CHECK((edges(0, 0, 0, 0) == -1 && edges(0, 0, 2, 0) == 3 && edges(0, 0, 1, 0) == 1 && edges(0, 1, 1, 1) == 2));
  CHECK((middles(0, 0, 0, 0) == Approx(1 - 4 / 3.0) && middles(0, 1, 0, 1) == Approx(0.5)));
  CHECK(affine_grid(theta, {1, 1, 1, 1}, true)(0, 0, 0, 0) == 1);  // the middle of one element
  std::mt19937 gen(3);
  const auto turns = numbers<3>(gen, {{2, 3, 4}}, 1);
  const tensor grid = affine_grid(turns, {2, 1, 2, 3, 2});
  for (index_t n = 0; n < 2; ++n)
    for (index_t i = 0; i < 3; ++i)
      CHECK(grid(n, 1, 0, 1, i) ==
            Approx(turns(n, i, 0) * 0.5 - turns(n, i, 1) * 2 / 3 + turns(n, i, 2) * 0.5 + turns(n, i, 3)));
  differences::check([](const auto& t) { return affine_grid(t, {2, 1, 2, 3, 2}); }, 12, turns);
  // The identity reads each element.
  const auto x = numbers<4>(gen, {{1, 2, 4, 5}}, 1);
  const tensor<double, 3> identity = tensor<double, 2>{{1, 0, 0}, {0, 1, 0}}.reshape({1, 2, 3});
  CHECK(eval(max(abs(grid_sample(x, affine_grid(identity, {1, 2, 4, 5})) - x))).item() < 1e-12);
  CHECK_THROWS_WITH(affine_grid(theta, {2, 1, 2, 3}),
                    "affine_grid: theta of shape (1, 2, 3) for a size of (2, 1, 2, 3); it must be (2,2,3)");
  CHECK_THROWS_AS(affine_grid(theta, {1, 1, -2, 3}), value_error);
}
