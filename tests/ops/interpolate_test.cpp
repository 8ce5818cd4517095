// tests/ops/interpolate_test.cpp: interpolate: sizes, factors and positions as PyTorch has them, and errors; the kernel
// table has values and gradients.
#include <string>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

std::vector<float> line(const tensor<float, 3>& t) { return std::vector<float>(t.begin(), t.end()); }
template <class E>
std::string text_of(const E& x, const interpolate_options& options) {
  try {
    eval(interpolate(x, options));
  } catch (const error& e) {
    return e.what();
  }
  return "nothing thrown";
}
bool contains(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("interpolate makes floor(extent factor) elements, and places them by the factor that is given") {
  const tensor x = tensor<float, 1>{0, 1, 2, 3}.reshape({1, 1, 4});
  CHECK(line(interpolate(x, {.scale_factor = 1.7})) == std::vector<float>{0, 0, 1, 1, 2, 2});
  CHECK(line(interpolate(x, {.size = 6})) == std::vector<float>{0, 0, 1, 2, 2, 3});
  CHECK(line(interpolate(x, {.size = 6, .mode = interpolation::nearest_exact})) ==
        std::vector<float>{0, 1, 1, 2, 3, 3});
  CHECK(line(interpolate(x, {.scale_factor = 0.6})) == std::vector<float>{0, 1});
  CHECK(line(interpolate(x, {.size = 8, .mode = interpolation::linear})) ==
        std::vector<float>{0, 0.25f, 0.75f, 1.25f, 1.75f, 2.25f, 2.75f, 3});
  CHECK(line(interpolate(x, {.size = 7, .mode = interpolation::linear, .align_corners = true})) ==
        std::vector<float>{0, 0.5f, 1, 1.5f, 2, 2.5f, 3});
  CHECK(line(interpolate(x, {.size = 1, .mode = interpolation::linear, .align_corners = true})) ==
        std::vector<float>{0});
  // With another factor than the quotient of the extents, results lie closer: 1 / 1.7 apart.
  const auto y = line(interpolate(x, {.scale_factor = 1.7, .mode = interpolation::linear}));
  for (int o = 0; o < 6; ++o)
    CHECK(y[static_cast<std::size_t>(o)] == Approx(std::min(3.0, std::max(0.0, (o + 0.5) / 1.7 - 0.5))).margin(1e-6));
  CHECK(line(interpolate(x, {.size = 4, .mode = interpolation::linear})) == line(x));
}

TEST_CASE("interpolate takes a number for all axes or one for each, and may go far up and down") {
  const tensor x = arange<float>(12).reshape({1, 1, 3, 4});
  CHECK(eval(interpolate(x, {.size = 7})).shape() == extents<4>{{1, 1, 7, 7}});
  CHECK(eval(interpolate(x, {.scale_factor = {2, 0.5}})).shape() == extents<4>{{1, 1, 6, 2}});
  CHECK(eval(interpolate(zeros<float>({0, 2, 3}), {.size = 5})).numel() == 0);
  for (const interpolation mode : {interpolation::nearest, interpolation::bilinear, interpolation::bicubic})
    for (const index_t n : {1, 300}) {
      const variable v = ones<double>({2, 1, 17, 23});
      const variable y = interpolate(v, {.size = n, .mode = mode});
      CHECK(max(abs(y.value() - 1)).result().item() < 1e-12);
      y.backward(ones<double>(y.shape()));
      CHECK(sum(v.grad()).result().item() == Approx(static_cast<double>(y.numel())));
    }
}

TEST_CASE("interpolate says what does not fit") {
  const tensor x = zeros<float>({2, 3, 4, 5});
  CHECK(contains(text_of(x, {}), "give either size or scale_factor"));
  CHECK(contains(text_of(x, {.size = 2, .scale_factor = 2}), "not both"));
  CHECK(contains(text_of(x, {.size = {1, 2, 3}}), "size has 3 numbers for 2 spatial axes"));
  CHECK(contains(text_of(x, {.scale_factor = 0}), "it must be positive and finite"));
  CHECK(contains(text_of(x, {.size = 0}), "axis 2 of shape (2, 3, 4, 5) would have 0 elements"));
  CHECK(contains(text_of(x, {.scale_factor = 0.2}), "would have 0 elements"));
  CHECK(contains(text_of(x, {.size = 2, .mode = interpolation::linear}), "this mode is for 1 spatial axes, not 2"));
  CHECK(contains(text_of(x, {.size = 2, .align_corners = true}), "align_corners is for linear"));
  CHECK(contains(text_of(zeros<float>({1, 1, 0}), {.size = 2}), "there must be at least one before and after"));
  CHECK_THROWS_AS((axis_numbers<index_t>{1, 2, 3, 4}), value_error);
  CHECK_THROWS_AS(interpolate(tensor<float, 4>(), {.size = 2}), shape_error);
}
