// tests/ops/boxes_test.cpp: boxes, their overlaps and their regions, against torchvision and differences, and errors.
// The kernel table has roi_align on all elements, layouts and devices.
#include "../grad/differences.hpp"

#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

// As reference/vision.py says.
tensor<double, 2> all_boxes() {
  const auto b = empty<double>({60, 4});
  for (index_t k = 0; k < 60; ++k) {
    const auto i = static_cast<double>(k);
    b(k, 0) = 10 + 9 * std::sin(1.3 * i);
    b(k, 1) = 10 + 9 * std::cos(2.1 * i);
    b(k, 2) = b(k, 0) + 5 + 4 * std::sin(0.7 * i);
    b(k, 3) = b(k, 1) + 5 + 4 * std::cos(1.7 * i);
  }
  return b;
}
tensor<double, 1> all_scores() {
  const auto s = empty<double>({60});
  for (index_t k = 0; k < 60; ++k) s(k) = std::sin(3.7 * static_cast<double>(k));
  return s;
}
tensor<double, 4> images() {
  const auto x = empty<double>({2, 3, 6, 7});
  for (index_t k = 0; k < 252; ++k) x.data()[k] = std::sin(0.37 * static_cast<double>(k * k));
  return x;
}
const tensor<double, 2> regions = {
    {0, 1, 1.5, 4.25, 5}, {1, -3, 2, 3, 9.5}, {1, 20, 20, 25, 22}, {0, 2.3, 2.1, 2.4, 2.1}};

using numbers = std::vector<double>;
/// check(numbers) for each line of the reference of this name.
template <class Check>
void each_line(const std::string& name, const Check& check) {
  std::ifstream file(SINTER_REPOSITORY "/tests/ops/reference/vision.csv");
  int count = 0;
  for (std::string text; std::getline(file, text);) {
    std::istringstream line(text);
    std::string word;
    std::getline(line, word, ',');
    if (word != name) continue;
    numbers v;
    while (std::getline(line, word, ',')) v.push_back(std::stod(word));
    check(v);
    ++count;
  }
  REQUIRE(count > 0);
}
template <class T>
void check_near(const T& got, const double* expected) {
  const auto dense = got.contiguous();
  for (index_t i = 0; i < dense.numel(); ++i)
    CHECK(dense.data()[i] == Approx(expected[i]).epsilon(1e-11).margin(1e-11));
}
std::vector<index_t> list(const tensor<std::int64_t, 1>& t) { return {t.begin(), t.end()}; }

}  // namespace

TEST_CASE("nms keeps what torchvision keeps, of all boxes or of each class") {
  const auto boxes = all_boxes();
  const auto scores = all_scores();
  const auto classes = eval(arange<std::uint8_t>(60) % std::uint8_t(3));
  each_line("nms", [&](const numbers& v) {
    INFO("threshold " << v[0] << ", of classes " << v[1]);
    const auto kept = v[1] == 0 ? nms(boxes, scores, v[0]) : batched_nms(boxes, scores, classes, v[0]);
    CHECK(list(kept) == std::vector<index_t>(v.begin() + 2, v.end()));
    const auto rough = v[1] == 0 ? nms(cast<float>(boxes), cast<float>(scores), v[0])
                                 : batched_nms(cast<float>(boxes), cast<float>(scores), classes, v[0]);
    CHECK(list(rough) == list(kept));
  });
}

TEST_CASE("nms takes equal scores in order, boxes at the threshold, none, and some without area") {
  const tensor<float, 2> boxes = {{0, 0, 2, 1}, {0, 0, 1, 1}, {0, 0, 2, 1}, {5, 5, 5, 5}, {5, 5, 5, 5}};
  CHECK(list(nms(boxes, ones<float>({5}), 0.5)) == std::vector<index_t>{0, 1, 3, 4});
  CHECK(list(nms(boxes, ones<float>({5}), 0.49)) == std::vector<index_t>{0, 3, 4});
  CHECK(list(nms(boxes, tensor<float, 1>{1, 2, 3, 0, -1}, 1)) == std::vector<index_t>{2, 1, 0, 3, 4});
  CHECK(list(nms(cast<half>(boxes), ones<half>({5}), 0.49)) == std::vector<index_t>{0, 3, 4});
  CHECK(list(batched_nms(boxes, ones<float>({5}), tensor<int, 1>{7, 7, -2, 7, 7}, 0.4)) ==
        std::vector<index_t>{0, 2, 3, 4});
  CHECK(nms(zeros<float>({0, 4}), zeros<float>({0}), 0.5).numel() == 0);
}

TEST_CASE("box_area and box_iou are torchvision's, with gradients") {
  const auto boxes = all_boxes();
  const auto left = boxes.slice(0, 0, 5), right = boxes.slice(0, 5, 9);
  each_line("box_iou", [&](const numbers& v) {
    const tensor overlaps = box_iou(left, right);
    REQUIRE(overlaps.shape() == extents<2>{{5, 4}});
    check_near(overlaps, v.data());
  });
  CHECK(box_area(tensor<float, 2>{{1, 2, 4, 7}, {0, 0, 0, 3}})(0) == 15);
  differences::check([](const auto& a, const auto& b) { return box_iou(a, b); }, 20, left.clone(), right.clone());
  differences::check([](const auto& a) { return box_area(a); }, 20, left.clone());
  CHECK(std::isnan(box_iou(zeros<float>({1, 4}), zeros<float>({1, 4}))(0, 0)));
  CHECK(box_iou(zeros<float>({0, 4}), ones<float>({3, 4})).shape() == extents<2>{{0, 3}});
}

TEST_CASE("roi_align reads what torchvision reads") {
  each_line("roi_align", [&](const numbers& v) {
    INFO("scale " << v[0] << ", ratio " << v[1] << ", aligned " << v[2]);
    const roi_align_options o{v[0], static_cast<index_t>(v[1]), v[2] == 1};
    const variable x = images();
    const variable y = roi_align(x, regions, {3, 2}, o);
    REQUIRE(y.shape() == extents<4>{{4, 3, 3, 2}});
    check_near(y.value(), v.data() + 3);
    y.backward(differences::weights(y.shape()));
    check_near(x.grad(), v.data() + 3 + 72);
    // Channels side by side.
    const variable last = images().to_memory_format(channels_last);
    const variable again = roi_align(last, regions, {3, 2}, o);
    check_near(again.value(), v.data() + 3);
    again.backward(differences::weights(y.shape()));
    check_near(last.grad(), v.data() + 3 + 72);
    differences::check([&](const auto& image) { return roi_align(image, regions, {3, 2}, o); }, 24, images());
  });
}

TEST_CASE("roi_align takes a list of boxes for each image, none, and many channels") {
  const auto x = images();
  const std::vector lists{regions.slice(0, 0, 1).slice(1, 1, 5).clone(), regions.slice(0, 1, 3).slice(1, 1, 5).clone()};
  const tensor listed = roi_align(x, lists, 3), numbered = roi_align(x, regions.slice(0, 0, 3), 3);
  CHECK(eval(max(abs(listed - numbered))).item() == 0);
  CHECK(eval(roi_align(x, zeros<double>({0, 5}), 7)).shape() == extents<4>{{0, 3, 7, 7}});
  const variable v = x;
  sum(roi_align(v, zeros<double>({0, 5}), 7)).backward();
  CHECK(eval(max(abs(v.grad()))).item() == 0);
  // A box as large as the image, a place in the middle of each element.
  const tensor wide = arange<float>(40 * 6).reshape({1, 40, 2, 3});
  const tensor same = roi_align(wide, tensor<float, 2>{{0, 0, 0, 3, 2}}, {2, 3}, {.aligned = true});
  CHECK(eval(max(abs(same - wide))).item() == 0);
}

TEST_CASE("what a region does not read does not spread, and boxes may be far away or no numbers") {
  const float nothing = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  const tensor<float, 4> wild = tensor<float, 2>{{1, infinity}}.reshape({1, 1, 1, 2});
  CHECK(eval(roi_align(wild, tensor<float, 2>{{0, 0, 0, 1, 1}}, 1, {.aligned = true}))(0, 0, 0, 0) == 1);
  const float huge = 1e30F;
  const tensor<float, 2> boxes = {
      {0, nothing, 0, 1, 1},     {0, 0, 0, nothing, 1}, {0, 0, 0, infinity, 1}, {0, 0, -infinity, 1, 1},
      {0, huge, 0, 2 * huge, 1}, {0, 0, 0, 1e9F, 1e9F}, {0, 0, 0, 2, 2},        {0, 5, 5, 7, 7}};
  for (const bool aligned : {false, true}) {
    const variable x = ones<float>({1, 1, 2, 2});
    const variable y = roi_align(x, boxes, 2, {.aligned = aligned});
    for (index_t k = 0; k < 6; ++k) CHECK(std::isnan(y.value()(k, 0, 1, 0)));
    CHECK(y.value()(6, 0, 1, 0) == 1);
    CHECK(y.value()(7, 0, 1, 0) == 0);
    sum(y).backward();
    CHECK(sum(x.grad()).item() == 4);  // of the only box within
  }
  CHECK(eval(roi_align(ones<float>({1, 1, 2, 2}), boxes, 2, {.sampling_ratio = 1}))(5, 0, 0, 0) == 0);
  for (const float image : {nothing, -0.5F, -0.0001F, 1.F, infinity})
    CHECK_THROWS_AS(roi_align(ones<float>({1, 1, 2, 2}), tensor<float, 2>{{image, 0, 0, 1, 1}}, 2), index_error);
  CHECK_THROWS_WITH(roi_align(ones<float>({2, 1, 2, 2}), tensor<float, 2>{{0.5F, 0, 0, 1, 1}}, 2),
                    "roi_align: image 0.5 at position 0 is not a whole number");
  for (const double scale : {double(nothing), double(infinity)})
    CHECK_THROWS_AS(eval(roi_align(ones<float>({1, 1, 2, 2}), boxes, 2, {.spatial_scale = scale})), value_error);
}

TEST_CASE("boxes that do not fit are refused") {
  const auto x = ones<float>({2, 3, 4, 5});
  CHECK_THROWS_WITH(roi_align(x, ones<float>({3, 4}), 2),
                    "roi_align: boxes of shape (3, 4); a box is five numbers, the image and x1, y1, x2, y2");
  CHECK_THROWS_WITH(roi_align(x, ones<float>({3, 5}), {2, 0}),
                    "roi_align: results of size (2, 0); it must be at least 1");
  CHECK_THROWS_WITH(roi_align(x, 2 * ones<float>({1, 5}), 2),
                    "roi_align: image 2 at position 0 is out of range [0, 2)");
  CHECK_THROWS_WITH(roi_align(x, std::vector{ones<float>({3, 5})}, 2),
                    "roi_align: boxes of shape (3, 5) in a list; a box is four numbers");
  CHECK_THROWS_WITH(nms(ones<float>({3, 5}), ones<float>({3}), 0.5),
                    "nms: boxes of shape (3, 5); a box is four numbers, x1, y1, x2, y2");
  CHECK_THROWS_WITH(nms(ones<float>({3, 4}), ones<float>({2}), 0.5),
                    "nms: boxes of shape (3, 4) with 2 scores; each box has one");
  CHECK_THROWS_WITH(batched_nms(ones<float>({3, 4}), ones<float>({3}), ones<int>({4}), 0.5),
                    "batched_nms: boxes of shape (3, 4) with 3 scores and 4 classes; each box has one");
  CHECK_THROWS_AS(box_iou(ones<float>({3, 4}), ones<float>({3, 3})), shape_error);
}

template <class X, class B>
concept has_regions = requires(const X& x, const B& b) { roi_align(x, b, 7); };
template <class B, class S>
concept has_nms = requires(const B& b, const S& s) { nms(b, s, 0.5); };
template <class A, class B>
concept has_iou = requires(const A& a, const B& b) { box_iou(a, b); };
static_assert(has_regions<variable<half, 4>, tensor<half, 2>> && !has_regions<tensor<float, 4>, tensor<double, 2>>);
static_assert(!has_regions<tensor<float, 3>, tensor<float, 2>> && !has_regions<tensor<float, 4>, tensor<float, 1>>);
static_assert(has_nms<tensor<float, 2>, tensor<float, 1>> && !has_nms<tensor<float, 2>, tensor<double, 1>>);
static_assert(!has_nms<tensor<float, 2, cuda<0>>, tensor<float, 1, cuda<0>>>);
static_assert(has_iou<tensor<float, 2>, variable<float, 2>> && !has_iou<tensor<float, 2>, tensor<float, 2, numa<0>>>);
static_assert(!has_iou<tensor<int, 2>, tensor<int, 2>>);
static_assert(!has_iou<tensor<float, 2>, tensor<float, 1>>);
