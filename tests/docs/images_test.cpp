// tests/docs/images_test.cpp: the snippets of docs/images.md, as tests.
#include <sinter/sinter.hpp>
#include "../catch.hpp"

using namespace sinter;

namespace {

// [docs:block]
template <device D = cpu, class Kind = nn::tracked>
struct block : nn::module<block<D, Kind>> {
  nn::conv2d<float, D, Kind, false> conv1, conv2;  // false: no bias, the batch norm has one
  nn::batch_norm2d<float, D, Kind> bn1, bn2;

  template <class X>
  auto forward(const X& input) const {
    const auto x = eval(input);
    return relu(bn2(conv2(relu(bn1(conv1(x))))) + x);
  }
  SINTER_MEMBERS(conv1, bn1, conv2, bn2);
};

block<> make_block(index_t channels, generator& gen) {
  const auto conv = [&] { return nn::conv2d(channels, channels, 3, gen, {.padding = 1}, nn::no_bias); };
  return {{}, conv(), conv(), nn::batch_norm2d(channels), nn::batch_norm2d(channels)};
}
// [docs:end]

}  // namespace

TEST_CASE("images: a network") {
  generator gen(1);
  const auto pictures = randn<float>(gen, {8, 3, 32, 32});
  const tensor<std::int64_t, 1> labels = {0, 1, 2, 3, 4, 5, 6, 7};
  // [docs:network]
  nn::sequential model{nn::conv2d(3, 16, 3, gen, {.padding = 1}, nn::no_bias),
                       nn::batch_norm2d(16),
                       nn::relu(),
                       nn::max_pool2d(2),
                       make_block(16, gen),
                       make_block(16, gen),
                       nn::adaptive_avg_pool2d(1),
                       nn::flatten(),
                       nn::linear(16, 10, gen)};
  optim::sgd optimizer(model, {.lr = 0.1, .momentum = 0.9, .nesterov = true});
  variable loss = cross_entropy(model(pictures), labels);
  loss.backward();
  optimizer.step();
  model.eval();                                          // running means and variances from now on
  tensor predicted = argmax(infer(model)(pictures), 1);  // batch norms run inside the convolutions
  // [docs:end]
  CHECK(predicted.shape() == extents<1>{{8}});
  CHECK(loss.value().item() > 0);
}

TEST_CASE("images: layouts") {
  generator gen(2);
  const auto pictures = randn<float>(gen, {4, 3, 8, 8});
  const auto filters = randn<float>(gen, {6, 3, 3, 3});
  // [docs:layouts]
  tensor y = conv2d(pictures, filters);                  // (4,6,6,6), lies channels-last
  bool pixel_by_pixel = y.is_contiguous(channels_last);  // true
  tensor rows = y.contiguous();                          // a copy, row-major
  tensor flat = y.reshape({4, 216});                     // a copy too: elements in the order of the shape
  // [docs:end]
  CHECK(pixel_by_pixel);
  CHECK(all(rows.reshape({4, 216}) == flat).item());
}

TEST_CASE("images: exactness") {
  generator gen(2);
  const auto pictures = randn<float>(gen, {4, 16, 24, 24});
  const auto filters = randn<float>(gen, {16, 16, 3, 3});
  const tensor by_tiles = eval(conv2d(pictures, filters));
  // [docs:exact]
  const exact_convolution exact;
  tensor sums = eval(conv2d(pictures, filters));
  // [docs:end]
  const float apart = max(abs(sums - by_tiles)).item();
  CHECK(apart > 0);
  CHECK(apart < 1e-4f);
}

TEST_CASE("the example of detection runs") {
  generator gen(3);
  const variable pictures = randn<float>(gen, {2, 8, 32, 32});
  const tensor<float, 2> found = {{0, 0, 40, 60}, {2, 0, 42, 60}, {64, 30, 120, 90}};
  const tensor<float, 1> confidence = {0.5f, 0.9f, 0.7f};
  // [docs:detection]
  tensor stay = nms(found, confidence, 0.5);                     // 1, 2: the first overlaps the second
  const std::vector boxes{index_select(found, 0, stay), found};  // those of two pictures
  variable parts = roi_align(pictures, boxes, 7, {.spatial_scale = 0.25, .aligned = true});  // (5,8,7,7)
  tensor overlaps = box_iou(boxes[0], boxes[1]);                                             // (2,3)
  // [docs:end]
  CHECK((stay.numel() == 2 && stay(0) == 1 && stay(1) == 2));
  CHECK(parts.shape() == extents<4>{{5, 8, 7, 7}});
  CHECK(overlaps(1, 2) == 1);
}
