// tests/nn/conv_test.cpp: convolution layers.
#include <catch2/catch.hpp>
#include <sinter/sinter.hpp>

#include <string>

using namespace sinter;

namespace {

template <class Error, class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  FAIL("no error");
  return {};
}

}  // namespace

TEST_CASE("convolution layers have PyTorch's parameters", "[nn][conv]") {
  generator gen(1);
  const nn::conv2d a(6, 8, {3, 5}, gen, {.stride = 2, .padding = {1, 2}, .groups = 2});
  CHECK(a.weight.shape() == extents<4>{{8, 3, 3, 5}});
  CHECK(a.bias.shape() == extents<1>{{8}});
  CHECK(eval(max(abs(a.weight.value()))).item() <= 1 / std::sqrt(45.0f));
  CHECK(eval(max(abs(a.bias.value()))).item() <= 1 / std::sqrt(45.0f));
  CHECK(eval(max(abs(a.weight.value()))).item() > 0.9f / std::sqrt(45.0f));
  CHECK(a.named_parameters().size() == 2);
  const nn::conv1d b(4, 6, 3, gen, {}, nn::no_bias);
  CHECK(b.named_parameters().size() == 1);
  const nn::conv_transpose2d c(6, 8, 3, gen, {.groups = 2});
  CHECK(c.weight.shape() == extents<4>{{6, 4, 3, 3}});
  CHECK(c.bias.shape() == extents<1>{{8}});
  const nn::conv3d d(2, 4, 3, gen);
  CHECK(d.weight.shape() == extents<5>{{4, 2, 3, 3, 3}});
  const nn::conv_transpose3d<double> e(2, 4, 3, gen);
  CHECK(e.weight.shape() == extents<5>{{2, 4, 3, 3, 3}});
  const nn::conv_transpose1d f(2, 4, 3, gen, {.stride = 2});
  CHECK(f(zeros<float>({1, 2, 5})).shape() == extents<3>{{1, 4, 11}});
}

TEST_CASE("a convolution layer is its function", "[nn][conv]") {
  generator gen(2);
  const nn::conv2d layer(3, 4, 3, gen, {.stride = 2, .padding = 1});
  const auto x = randn<float>(gen, {2, 3, 8, 7});
  const tensor y = infer(layer)(x),
               expected = conv2d(x, layer.weight.value(), layer.bias.value(), {.stride = 2, .padding = 1});
  CHECK(y.shape() == extents<4>{{2, 4, 4, 4}});
  CHECK(eval(all(y == expected)).item());
  const nn::conv2d bare(3, 4, 3, gen, {.stride = 2}, nn::no_bias);
  CHECK(eval(all(tensor(infer(bare)(x)) == tensor(conv2d(x, bare.weight.value(), {.stride = 2})))).item());
  const nn::conv_transpose2d up(3, 2, 4, gen, {.stride = 2, .padding = 1});
  CHECK(up(x).shape() == extents<4>{{2, 2, 16, 14}});
  const auto there = layer.to<numa<0>>();
  CHECK(eval(all(tensor(infer(there)(x.to<numa<0>>())).to<cpu>() == expected)).item());
}

TEST_CASE("a network with convolutions learns", "[nn][conv]") {
  generator gen(3);
  const nn::sequential model{nn::conv2d(1, 4, 3, gen, {.padding = 1}), nn::relu(),
                             nn::conv2d(4, 2, 3, gen, {.stride = 2, .padding = padding::valid}), nn::flatten(),
                             nn::linear(18, 2, gen)};
  const auto x = randn<float>(gen, {16, 1, 8, 8});
  // Is there more in the upper half?
  const tensor<std::int64_t, 1> labels = cast<std::int64_t>(sum(x.slice(2, 0, 4), {1, 2, 3}) > 0.0f);
  optim::sgd optimizer(model, {.lr = 0.1, .momentum = 0.9});
  float first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    optimizer.zero_grad();
    variable loss = cross_entropy(model(x), labels);
    loss.backward();
    optimizer.step();
    last = loss.value().item();
    if (i == 0) first = last;
  }
  CHECK(first > 0.3f);
  CHECK(last < 0.05f);
}

TEST_CASE("a summary counts multiply-adds of convolutions", "[nn][conv]") {
  generator gen(4);
  const nn::sequential model{nn::conv2d(3, 8, 3, gen, {.padding = 1}),
                             nn::conv_transpose2d(8, 2, 2, gen, {.stride = 2})};
  const auto table = nn::summary(model, {1, 3, 5, 5});
  CHECK(table.multiply_adds == 25 * 8 * 27 + 25 * 8 * 2 * 4);
}

TEST_CASE("convolutions name what does not fit", "[nn][conv]") {
  generator gen(5);
  CHECK(message_of<shape_error>([&] { nn::conv2d(3, 4, 3, gen, {.groups = 2}); }) ==
        "conv2d: 2 groups do not divide 4 and 3 channels");
  CHECK(message_of<shape_error>([&] { nn::conv2d(3, 4, 0, gen); }) ==
        "conv2d: a kernel of 0 taps; it needs one or more");
  CHECK(message_of<value_error>([&] { nn::conv1d(3, 4, 1, gen, {.groups = 0}); }) ==
        "conv1d: groups is 0; it must be 1 or more");
  CHECK(message_of<value_error>([&] { nn::conv2d(3, 4, {1, 2, 3}, gen); }) ==
        "a window over 2 axes takes one number or 2, not 3");
  const auto x = zeros<float>({2, 3, 6, 6}), w = zeros<float>({4, 3, 3, 3});
  CHECK(message_of<shape_error>([&] { eval(conv2d(zeros<float>({2, 5, 6, 6}), w)); }) ==
        "conv2d: x of shape (2, 5, 6, 6) has 5 channels; weights of shape (4, 3, 3, 3) take 3");
  CHECK(message_of<shape_error>([&] { eval(conv2d(x, w, zeros<float>({3}))); }) ==
        "conv2d: a bias of shape (3,) for 4 filters; it has one value for each");
  CHECK(message_of<shape_error>([&] { eval(conv2d(x, zeros<float>({4, 3, 8, 3}))); }) ==
        "conv2d: a window of 8 elements is larger than axis 2 of x of shape (2, 3, 6, 6) with padding 0");
  CHECK(message_of<value_error>([&] { eval(conv2d(x, w, {.stride = 0})); }) ==
        "conv2d: stride is 0; it must be 1 or more");
  CHECK(message_of<value_error>([&] { eval(conv2d(x, w, {.padding = -1})); }) ==
        "conv2d: padding is -1; it must not be negative");
  CHECK(message_of<value_error>([&] { eval(conv2d(x, w, {.stride = 2, .padding = padding::same})); }) ==
        "conv2d: padding::same is for a stride of 1, not 2");
  CHECK(message_of<value_error>(
            [&] { eval(conv_transpose2d(x, zeros<float>({3, 4, 3, 3}), {.stride = 2, .output_padding = 2})); }) ==
        "conv_transpose2d: output_padding is 2; it must be 0 or more, and below the stride, 2, or the dilation, 1");
  CHECK(message_of<shape_error>([&] { eval(conv_transpose2d(x, w)); }) ==
        "conv_transpose2d: x of shape (2, 3, 6, 6) has 3 channels; weights of shape (4, 3, 3, 3) take 4");
  CHECK(message_of<shape_error>([&] {
          const nn::sequential model{nn::conv2d(3, 4, 3, gen), nn::sequential{nn::conv2d(5, 4, 3, gen)}};
          eval(model(x));
        }).find("in module 1.0: conv2d: x of shape (2, 4, 4, 4) has 4 channels") != std::string::npos);
  CHECK(conv2d(zeros<float>({0, 3, 6, 6}), w).shape() == extents<4>{{0, 4, 4, 4}});
}
