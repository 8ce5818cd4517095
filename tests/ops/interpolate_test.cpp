// tests/ops/interpolate_test.cpp: interpolate: sizes, factors and positions as PyTorch has them, and errors; the kernel
// table has values and gradients.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include "../catch.hpp"
#include "../grad/differences.hpp"
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
  for (const interpolation mode :
       {interpolation::nearest, interpolation::bilinear, interpolation::bicubic, interpolation::area})
    for (const index_t n : {1, 300}) {
      const variable v = ones<double>({2, 1, 17, 23});
      const variable y = interpolate(v, {.size = n, .mode = mode});
      CHECK(max(abs(y.value() - 1)).result().item() < 1e-12);
      y.backward(ones<double>(y.shape()));
      CHECK(sum(v.grad()).result().item() == Approx(static_cast<double>(y.numel())));
    }
}

TEST_CASE("interpolate by area and with antialiasing gives PyTorch's results and gradients") {
  std::ifstream file(SINTER_REPOSITORY "/tests/ops/reference/interpolate.csv");
  int cases = 0;
  for (std::string text; std::getline(file, text); ++cases) {
    INFO(text.substr(0, 24));
    std::istringstream line_of(text);
    std::string mode, number;
    std::getline(line_of, mode, ',');
    std::vector<double> v;
    while (std::getline(line_of, number, ',')) v.push_back(std::stod(number));
    interpolate_options o{.mode = mode == "area"       ? interpolation::area
                                  : mode == "bilinear" ? interpolation::bilinear
                                                       : interpolation::bicubic,
                          .align_corners = v[0] == 1,
                          .antialias = mode != "area"};
    if (v[1] > 0) o.size = {static_cast<index_t>(v[1]), static_cast<index_t>(v[2])};
    else o.scale_factor = {v[1] / -10, v[2] / -10};
    for (const memory_format format : {memory_format::contiguous, channels_last}) {
      auto images = empty<double>({1, 2, 9, 7});
      for (index_t i = 0; i < 126; ++i) images.data()[i] = std::sin(0.37 * static_cast<double>(i * i));
      const variable x = images.to_memory_format(format);
      const variable y = interpolate(x, o);
      y.backward(differences::weights(y.shape()));
      const auto values = y.value().contiguous(), gradient = x.grad().contiguous();
      REQUIRE(v.size() == static_cast<std::size_t>(3 + values.numel() + 126));
      std::size_t at = 3;
      double largest = 0;
      for (const double e : values) largest = std::max(largest, std::abs(e - v[at++]));
      for (const double e : gradient) largest = std::max(largest, std::abs(e - v[at++]));
      CHECK(largest < 1e-11);
    }
  }
  CHECK(cases == 18);
  // An axis that keeps its size stays as it is; there PyTorch's gradient is not that of its result.
  std::mt19937 gen(1);
  const auto x = differences::random(gen, {1, 1, 9, 7});
  differences::check(
      [](const auto& v) {
        return interpolate(v, {.scale_factor = {0.3, 1.1}, .mode = interpolation::bicubic, .antialias = true});
      },
      63, x);
}

TEST_CASE("area is the mean of what a result has a part of, in any number of axes") {
  const tensor x = arange<float>(6).reshape({1, 1, 6});
  CHECK(line(interpolate(x, {.size = 3, .mode = interpolation::area})) == std::vector<float>{0.5f, 2.5f, 4.5f});
  CHECK(line(interpolate(x, {.size = 4, .mode = interpolation::area})) == std::vector<float>{0.5f, 1.5f, 3.5f, 4.5f});
  CHECK(line(interpolate(x, {.scale_factor = 0.6, .mode = interpolation::area})) ==
        std::vector<float>{0.5f, 2.5f, 4.5f});
  const tensor volume = arange<double>(2 * 60).reshape({1, 2, 3, 4, 5});
  CHECK(eval(max(abs(interpolate(volume, {.size = {2, 3, 7}, .mode = interpolation::area}) -
                     adaptive_avg_pool3d(volume, {2, 3, 7}))))
            .item() < 1e-12);
  // What counts nothing does not spread.
  tensor<float, 3> wild = x.clone();
  wild(0, 0, 5) = std::numeric_limits<float>::infinity();
  const auto y = line(interpolate(wild, {.size = 4, .mode = interpolation::area}));
  CHECK((y[2] == 3.5f && y[3] == std::numeric_limits<float>::infinity()));
  // An axis of many elements to one.
  CHECK(line(interpolate(ones<float>({1, 1, 100000}), {.size = 1, .mode = interpolation::area}))[0] == 1);
}

TEST_CASE("interpolate has the places, roundings and cubic weights of ONNX") {
  using enum pixel_places;
  const tensor x = arange<double>(5).reshape({1, 1, 5});
  const auto place = [](pixel_places p, double o, double out, double length) {
    const double half = (o + 0.5) * 5 / length - 0.5;
    if (p == asymmetric) return o * 5 / length;
    if (p == align_corners) return length > 1 ? o * 4 / (length - 1) : 0;
    if (p == pytorch_half_pixel && !(length > 1)) return 0.0;
    return p == half_pixel_symmetric ? half + 2.5 * (1 - out / length) : half;
  };
  for (const pixel_places p : {half_pixel, pytorch_half_pixel, half_pixel_symmetric, asymmetric, align_corners})
    for (const double factor : {0.2, 0.75, 1.0, 1.3, 2.5}) {
      INFO("places " << static_cast<int>(p) << ", factor " << factor);
      const double length = 5 * factor, out = std::floor(length);
      const tensor y = interpolate(x, {.scale_factor = factor, .mode = interpolation::linear, .places = p});
      REQUIRE(y.extent(2) == static_cast<index_t>(out));
      for (index_t o = 0; o < y.extent(2); ++o)  // x is the number of its element
        CHECK(y(0, 0, o) == Approx(std::clamp(place(p, static_cast<double>(o), out, length), 0.0, 4.0)).margin(1e-12));
      const auto rounded = [&](pixel_rounding r, const auto& round) {
        const interpolate_options options{.scale_factor = factor, .places = p, .nearest_mode = r};
        const tensor z = interpolate(x, options);
        for (index_t o = 0; o < z.extent(2); ++o) {
          // Places whose last digit decides are left out.
          const double at = place(p, static_cast<double>(o), out, length);
          if (round(at - 1e-9) == round(at + 1e-9)) CHECK(z(0, 0, o) == std::clamp(round(at), 0.0, 4.0));
        }
        differences::check([&](const auto& v) { return interpolate(v, options); }, 5, x);
      };
      rounded(pixel_rounding::floor, [](double v) { return std::floor(v); });
      rounded(pixel_rounding::ceil, [](double v) { return std::ceil(v); });
      rounded(pixel_rounding::prefer_floor, [](double v) { return std::ceil(v - 0.5); });
      rounded(pixel_rounding::prefer_ceil, [](double v) { return std::floor(v + 0.5); });
    }
  // Every second place lies in the middle.
  const auto middles = [&](pixel_rounding r) {
    const interpolate_options halves{.size = 10, .places = asymmetric, .nearest_mode = r};
    return std::vector{eval(interpolate(x, halves))(0, 0, 1), eval(interpolate(x, halves))(0, 0, 2)};
  };
  CHECK(middles(pixel_rounding::prefer_floor) == std::vector<double>{0, 1});
  CHECK(middles(pixel_rounding::prefer_ceil) == std::vector<double>{1, 1});
  std::mt19937 gen(3);
  const interpolate_options o{.scale_factor = {1.6, 0.7},
                              .mode = interpolation::bicubic,
                              .places = asymmetric,
                              .cubic_coeff_a = -0.5,
                              .exclude_outside = true};
  CHECK(eval(max(abs(interpolate(ones<double>({1, 1, 4, 5}), o) - 1))).item() < 1e-14);
  differences::check([&](const auto& v) { return interpolate(v, o); }, 40, differences::random(gen, {1, 2, 4, 5}));
  // With a = -0.5 squares are met between elements.
  const tensor squares =
      interpolate(eval(x * x).reshape({1, 1, 1, 5}).broadcast_to({1, 1, 5, 5}).contiguous(),
                  {.size = {5, 10}, .mode = interpolation::bicubic, .places = asymmetric, .cubic_coeff_a = -0.5});
  CHECK(squares(0, 0, 2, 5) == Approx(2.5 * 2.5));
}

TEST_CASE("interpolate says what does not fit") {
  const tensor x = zeros<float>({2, 3, 4, 5});
  CHECK(contains(text_of(x, {}), "give either size or scale_factor"));
  CHECK(contains(text_of(x, {.size = 2, .scale_factor = 2}), "not both"));
  CHECK(contains(text_of(x, {.size = {1, 2, 3}}), "size has 3 numbers for 2 spatial axes"));
  CHECK(contains(text_of(x, {.scale_factor = 0}), "it must be above 0 and below 1e9"));
  CHECK(contains(text_of(x, {.scale_factor = 1e18}), "scale_factor is 1e+18; it must be above 0 and below 1e9"));
  CHECK(contains(text_of(x, {.size = 0}), "axis 2 of shape (2, 3, 4, 5) would have 0 elements"));
  CHECK(contains(text_of(x, {.scale_factor = 0.2}), "would have 0 elements"));
  CHECK(contains(text_of(x, {.size = 2, .mode = interpolation::linear}), "this mode is for 1 spatial axes, not 2"));
  CHECK(contains(text_of(x, {.size = 2, .align_corners = true}), "align_corners is for linear"));
  CHECK(contains(text_of(x, {.size = 2, .mode = interpolation::area, .align_corners = true}), "align_corners is for"));
  CHECK(contains(text_of(x, {.size = 2, .antialias = true}), "antialias is for bilinear and bicubic"));
  CHECK(contains(text_of(x, {.size = 2, .mode = interpolation::area, .places = pixel_places::half_pixel}),
                 "places are for nearest"));
  CHECK(contains(text_of(x, {.size = 2, .exclude_outside = true}), "are for bicubic without antialias"));
  CHECK(contains(text_of(zeros<float>({1, 1, 0}), {.size = 2}), "there must be at least one before and after"));
  CHECK_THROWS_AS((axis_numbers<index_t>{1, 2, 3, 4}), value_error);
  CHECK_THROWS_AS(interpolate(tensor<float, 4>(), {.size = 2}), shape_error);
}
