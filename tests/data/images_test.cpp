// tests/data/images_test.cpp: images turned, recoloured, erased and mixed, against torchvision and what is drawn.
#include "../catch.hpp"

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include <sinter/data.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;
using Catch::Contains;

namespace {

struct change {
  std::string name;
  std::vector<double> numbers;
  tensor<double, 4> result;  // (1, 3, 4, 6)
};
const std::vector<change>& reference() {
  static const auto all = [] {
    std::vector<change> changes;
    std::ifstream file(SINTER_REPOSITORY "/tests/data/reference/augment.txt");
    for (std::string line; std::getline(file, line);) {
      std::istringstream in(line);
      change c;
      std::string word;
      in >> c.name;
      while (in >> word && word != ":") c.numbers.push_back(std::stod(word));
      std::vector<double> pixels;
      while (in >> word) pixels.push_back(std::stod(word));
      c.result = from_data<double>(pixels, {1, 3, 4, 6});
      changes.push_back(c);
    }
    return changes;
  }();
  return all;
}
template <class A, class B>
bool all_equal(const A& a, const B& b) {
  return a.shape() == b.shape() && all(a == b).item();
}
template <class A, class B>
double distance(const A& a, const B& b) {
  return static_cast<double>(eval(max(abs(a - b))).item());
}
tensor<float, 4> random_images(index_t n, index_t height = 8, index_t width = 9) {
  generator gen(11);
  return rand(gen, {n, 3, height, width});
}
/// What f gives of a batch is what it gives of its parts, and the same on several threads.
template <class F>
void check_parts(const F& f) {
  const auto images = random_images(12);
  generator gen(3);
  const auto whole = f(gen, images);
  for (index_t from : {0, 5}) {
    generator same(3);
    const samples_from guard(from);
    CHECK(all_equal(f(same, images.slice(0, from, from == 0 ? 5 : 12)), whole.slice(0, from, from == 0 ? 5 : 12)));
    CHECK(same.offset() == gen.offset());
  }
  const int threads = num_threads();
  set_num_threads(threads == 1 ? 3 : 1);
  generator same(3);
  CHECK(all_equal(f(same, images), whole));
  set_num_threads(threads);
  CHECK_FALSE(all_equal(f(gen, images), whole));  // the next draw
  CHECK(f(gen, random_images(0)).extent(0) == 0);
}

}  // namespace

TEST_CASE("colours and maps are changed as by torchvision") {
  const auto image = reference().at(0).result;
  std::map<std::string, int> seen;
  for (const change& c : reference()) {
    CAPTURE(c.name, c.numbers);
    ++seen[c.name];
    const double tolerance = c.name == "hue" ? 2e-6 : 1e-12;  // torchvision turns hues in float
    const auto check = [&](const tensor<double, 4>& y) { CHECK(distance(y, c.result) < tolerance); };
    if (c.name == "brightness") check(adjust_brightness(image, c.numbers[0]));
    if (c.name == "contrast") check(adjust_contrast(image, c.numbers[0]));
    if (c.name == "saturation") check(adjust_saturation(image, c.numbers[0]));
    if (c.name == "hue") check(adjust_hue(image, c.numbers[0]));
    if (c.numbers.size() != 6) continue;
    const affine_map map{c.numbers[0], {c.numbers[1], c.numbers[2]}, c.numbers[3], {c.numbers[4], c.numbers[5]}};
    check(affine(image, map, {.mode = c.name == "nearest" ? interpolation::nearest : interpolation::bilinear}));
  }
  CHECK(seen["brightness"] + seen["contrast"] + seen["saturation"] == 9);
  CHECK(seen["hue"] == 5);
  CHECK(seen["nearest"] + seen["bilinear"] == 8);
}

TEST_CASE("random_affine maps each image by amounts within its ranges") {
  const auto images = random_images(20);
  const random_affine_options o{
      .angle = 30, .translate = {0.3, 0.2}, .scale = {0.5, 1.5}, .shear = 10, .mode = interpolation::bilinear};
  generator gen(2), same(2);
  const auto y = random_affine(gen, images, o);
  const tensor u = rand<double>(same, {20, 5});
  for (index_t i = 0; i < 20; ++i) {
    const affine_map map{(2 * u(i, 0) - 1) * 30,
                         {std::round((2 * u(i, 1) - 1) * 0.3 * 9), std::round((2 * u(i, 2) - 1) * 0.2 * 8)},
                         0.5 + u(i, 3),
                         {(2 * u(i, 4) - 1) * 10, 0}};
    CHECK(distance(affine(images.slice(0, i, i + 1), map, {.mode = interpolation::bilinear}), y.slice(0, i, i + 1)) <
          1e-6);
  }
  CHECK(all_equal(random_affine(gen, images, {}), images));
  check_parts([&](generator& g, const auto& x) { return random_affine(g, x, o); });
  CHECK_THROWS_WITH(random_affine(gen, images, {.angle = -1}),
                    Contains("angle -1 and shear 0; they must be 0 or more"));
  CHECK_THROWS_AS(random_affine(gen, images, {.translate = {0, 1.5}}), value_error);
  CHECK_THROWS_AS(random_affine(gen, images, {.scale = {2, 1}}), value_error);
  CHECK_THROWS_AS(affine(images, {.scale = 0}), value_error);
  CHECK_THROWS_WITH(affine(images, {.angle = NAN}), "affine: the angle is nan; it must be finite");
  CHECK_THROWS_WITH(affine(images, {.shear = {0, INFINITY}}), "affine: the shear along y is inf; it must be finite");
  CHECK_THROWS_WITH(random_affine(gen, images, {.angle = INFINITY}), Catch::Contains("random_affine: angle inf"));
}

TEST_CASE("color_jitter changes each image by amounts within its ranges, in any order") {
  const auto images = random_images(200, 2, 3);
  generator gen(2), same(2);
  const auto y = color_jitter(gen, images, {.brightness = 0.4});
  const tensor u = rand<double>(same, {200, 5});
  CHECK(gen.offset() == same.offset());
  for (index_t i = 0; i < 200; i += 40)
    CHECK(all_equal(y.slice(0, i, i + 1), adjust_brightness(images.slice(0, i, i + 1), 0.6 + u(i, 0) * 0.8)));
  const auto both = color_jitter(gen, images, {.brightness = 0.9, .saturation = 0.9});
  const tensor v = rand<double>(same, {200, 5});
  int first = 0, second = 0;
  for (index_t i = 0; i < 200; ++i) {
    const auto x = images.slice(0, i, i + 1);
    const double bright = 0.1 + v(i, 0) * 1.8, rich = 0.1 + v(i, 2) * 1.8;
    const auto got = both.slice(0, i, i + 1);
    const bool one = distance(got, adjust_saturation(adjust_brightness(x, bright), rich)) < 1e-6;
    const bool other = distance(got, adjust_brightness(adjust_saturation(x, rich), bright)) < 1e-6;
    CHECK((one || other));
    first += one && !other;
    second += other && !one;
  }
  CHECK(first > 30);  // of those in which the order makes a difference
  CHECK(second > 30);
  check_parts([](generator& g, const auto& x) {
    return color_jitter(g, x, {.brightness = 0.4, .contrast = 0.3, .saturation = 2, .hue = 0.2});
  });
  CHECK(all_equal(color_jitter(gen, images, {}), images));
  // NaN in one channel of the first pixel of two.
  const auto holed = full<float>({1, 3, 1, 2}, 0.5F);
  holed(0, 1, 0, 0) = NAN;
  for (const auto& one_of_both : {adjust_hue(holed, 0.25), adjust_saturation(holed, 0.5)})
    for (index_t c = 0; c < 3; ++c)
      CHECK((std::isnan(one_of_both(0, c, 0, 0)) && one_of_both(0, c, 0, 1) == Approx(0.5).margin(1e-3)));
  const auto brighter = adjust_brightness(holed, 1.5), flatter = adjust_contrast(holed, 0.5);
  CHECK((brighter(0, 0, 0, 0) == 0.75F && std::isnan(brighter(0, 1, 0, 0))));
  CHECK((std::isnan(flatter(0, 1, 0, 0)) && std::isnan(flatter(0, 0, 0, 1))));  // its mean is NaN
  CHECK_THROWS_WITH(adjust_hue(images, 0.6), "adjust_hue: 0.6 is outside [-0.5, 0.5]");
  CHECK_THROWS_AS(adjust_contrast(images, -0.1), value_error);
  CHECK_THROWS_AS(color_jitter(gen, images, {.hue = 0.51}), value_error);
  CHECK_THROWS_AS(color_jitter(gen, images, {.contrast = NAN}), value_error);
  CHECK_THROWS_WITH(color_jitter(gen, zeros<float>({1, 1, 2, 2}), {.hue = 0.1}), Contains("they must have 3 channels"));
}

TEST_CASE("random_erasing and cutout overwrite one window of an image") {
  const auto images = eval(random_images(400, 20, 30) + 1.f);
  generator gen(6);
  const auto y = random_erasing(gen, images, {.p = 0.7, .scale = {0.1, 0.2}, .ratio = {0.5, 2}, .value = -1});
  int changed = 0;
  for (index_t i = 0; i < 400; ++i) {
    const tensor gone = eval(y[i] == -1.f);
    CHECK(all(gone || y[i] == images[i]).item());
    const tensor rows = eval(any(gone[0], 1)), columns = eval(any(gone[0], 0));
    const auto height = eval(count_nonzero(rows)).item(), width = eval(count_nonzero(columns)).item();
    CHECK(eval(count_nonzero(gone)).item() == 3 * height * width);  // a window, of all channels
    if (height == 0) continue;
    ++changed;
    CHECK(height * width >= 50);
    CHECK(height * width <= 135);  // sizes are rounded
    CHECK(2.3 * static_cast<double>(height) >= static_cast<double>(width));
    CHECK(static_cast<double>(height) <= 2.3 * static_cast<double>(width));
  }
  CHECK(changed > 240);
  CHECK(changed < 320);
  check_parts([](generator& g, const auto& x) { return random_erasing(g, x); });

  const auto bytes = eval(cast<std::uint8_t>(zeros<float>({500, 2, 6, 7}) + 9.f));
  generator one(4), same(4);
  const auto z = cutout(one, bytes, 3);
  const tensor u = rand<double>(same, {500, 2});
  for (index_t i = 0; i < 500; ++i) {
    const auto top = static_cast<index_t>(u(i, 0) * 6) - 1, left = static_cast<index_t>(u(i, 1) * 7) - 1;
    index_t wrong = 0;
    for (index_t r = 0; r < 6; ++r)
      for (index_t c = 0; c < 7; ++c)
        wrong += (z(i, 1, r, c) == 0) != (r >= top && r < top + 3 && c >= left && c < left + 3);
    CHECK(wrong == 0);
  }
  check_parts([](generator& g, const auto& x) { return cutout(g, x, 4); });
  CHECK(all(cutout(one, bytes, std::numeric_limits<index_t>::max()) == std::uint8_t{0}).item());
  CHECK_THROWS_AS(cutout(one, bytes, 0), value_error);
  CHECK_THROWS_AS(random_erasing(one, bytes, {.value = -1}), value_error);
  CHECK_THROWS_AS(random_erasing(one, bytes, {.p = 2}), value_error);
  CHECK_THROWS_AS(random_erasing(one, bytes, {.scale = {0.5, 0.2}}), value_error);
  CHECK_THROWS_AS(random_erasing(one, bytes, {.ratio = {0, 1}}), value_error);
}

TEST_CASE("mixup and cutmix mix each sample with the one before it, and the labels alike") {
  const auto images = random_images(5);
  const tensor<std::int64_t, 1> labels = {0, 2, 2, 1, 3};
  const tensor<float, 2> sure = one_hot(labels, 4).to<float>();
  generator gen(8);
  for (int i = 0; i < 20; ++i) {
    const auto [x, y] = mixup(gen, images, labels, 4, {.alpha = 0.4});
    const float share = y(0, 0);
    CHECK(distance(y, eval(sure * share + roll(sure, 1, 0) * (1 - share))) < 1e-6);
    CHECK(distance(x, eval(images * share + roll(images, 1, 0) * (1 - share))) < 1e-6);
  }
  for (int i = 0; i < 20; ++i) {
    const auto [x, y] = cutmix(gen, images, labels, 4);
    const tensor<bool, 4> taken = eval(x == roll(images, 1, 0));
    CHECK(all(taken || x == images).item());
    const double part = static_cast<double>(eval(count_nonzero(taken)).item()) / static_cast<double>(taken.numel());
    CHECK(distance(y, eval(sure * static_cast<float>(1 - part) + roll(sure, 1, 0) * static_cast<float>(part))) < 1e-6);
  }
  CHECK(mixup(gen, zeros<double>({0, 2}), zeros<std::int32_t>({0}), 3).targets.shape() == extents<2>{{0, 3}});
  const auto before = gen.offset();
  CHECK_THROWS_WITH(mixup(gen, images, labels, 3), "mixup: label 3 of sample 4 is outside [0, 3)");
  CHECK_THROWS_AS(cutmix(gen, images, labels.slice(0, 0, 4), 4), shape_error);
  CHECK_THROWS_AS(mixup(gen, images, labels, 4, {.alpha = 0}), value_error);
  CHECK_THROWS_AS(cutmix(gen, images, labels, 4, {.alpha = INFINITY}), value_error);
  CHECK_THROWS_AS(random_affine(gen, images, {.angle = INFINITY}), value_error);
  CHECK_THROWS_AS(random_erasing(gen, zeros<std::uint8_t>({1, 1, 4, 4}), {.value = 300}), value_error);
  CHECK(gen.offset() == before);
}

TEST_CASE("shares have the moments of the Beta distribution") {
  for (const double alpha : {0.05, 0.3, 1.0, 4.0, 200.0}) {
    generator gen(1);
    double sum = 0, squares = 0;
    const int n = 20000;
    for (int i = 0; i < n; ++i) {
      detail::batch_numbers numbers(gen);
      const double x = detail::beta_number(numbers, alpha);
      CHECK((x >= 0 && x <= 1));
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    CAPTURE(alpha);
    CHECK(std::abs(sum / n - 0.5) < 5 * std::sqrt(variance / n));
    CHECK(squares / n == Approx(variance).epsilon(0.05));
  }
}
