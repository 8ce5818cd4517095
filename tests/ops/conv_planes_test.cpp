// tests/ops/conv_planes_test.cpp: convolutions of images of few channels, which kernels read channel by channel.
#include "../catch.hpp"
#include "../same_bits.hpp"

#include <algorithm>

#include <sinter/io.hpp>
#include <sinter/sinter.hpp>

using namespace sinter;

namespace {

/// Value and gradients of a convolution of x as it lies and of x with the channels last are the same but for rounding.
template <class X, class W, class F>
void check_both_layouts(const X& x, const W& w, const F& convolve) {
  const auto results_of = [&](const X& image) {
    variable a(image), b(w.clone());
    const auto y = convolve(a, b);
    generator numbers(4);
    y.backward(randn(numbers, y.shape()));
    return std::tuple(y.value(), a.grad(), b.grad());
  };
  const auto [y, dx, dw] = results_of(x.contiguous());
  const auto [y_last, dx_last, dw_last] = results_of(x.to_memory_format(channels_last));
  const auto differ = [](const auto& p, const auto& q) {
    REQUIRE(p.shape() == q.shape());
    return p.numel() == 0 ? 0.0 : static_cast<double>(max_abs_difference(p, q) / (1e-30 + max(abs(q)).item()));
  };
  CHECK(differ(y, y_last) < 2e-6);
  CHECK(differ(dx, dx_last) < 2e-5);
  CHECK(differ(dw, dw_last) < 2e-5);
}

}  // namespace

TEST_CASE("A convolution of few channels reads them one after the other", "[conv]") {
  generator gen(1);
  for (const index_t channels : {1, 2, 3, 4, 5}) {
    const tensor<float, 4> x = randn(gen, {3, channels, 17, 23}), w = randn(gen, {10, channels, 3, 4});
    for (const conv_options<2>& o :
         {conv_options<2>{}, conv_options<2>{.padding = 1}, conv_options<2>{.stride = {3, 2}, .padding = {4, 6}},
          conv_options<2>{.padding = 3, .dilation = {2, 3}},
          conv_options<2>{.padding = 2, .padding_mode = pad_mode::reflect}})
      check_both_layouts(x, w, [&](const auto& a, const auto& b) { return eval(conv2d(a, b, o)); });
  }
  const tensor<float, 4> x = randn(gen, {2, 4, 9, 9}), w = randn(gen, {6, 2, 3, 3}), of_each = randn(gen, {8, 1, 3, 3});
  check_both_layouts(x, w,
                     [](const auto& a, const auto& b) { return eval(conv2d(a, b, {.padding = 1, .groups = 2})); });
  check_both_layouts(x, of_each,
                     [](const auto& a, const auto& b) { return eval(conv2d(a, b, {.padding = 1, .groups = 4})); });
  const tensor<float, 3> line = randn(gen, {2, 3, 700}), taps = randn(gen, {5, 3, 90});
  check_both_layouts(line, taps,
                     [](const auto& a, const auto& b) { return eval(conv1d(a, b, {.stride = 2, .padding = 50})); });
}

TEST_CASE("A convolution of few channels does not copy its image", "[conv]") {
  generator gen(5);
  const tensor<float, 4> w = randn(gen, {7, 3, 3, 3}), picture = randn(gen, {2, 3, 9, 9});
  const tensor<float, 4> wide_w = randn(gen, {7, 5, 3, 3}), wide = randn(gen, {2, 5, 9, 9});
  const auto copies = [](const auto& image, const auto& weights) {
    profile guard;
    static_cast<void>(eval(conv2d(image, weights)));
    const auto rows = guard.rows();
    return std::any_of(rows.begin(), rows.end(), [](const profile_row& r) { return r.name == "copy"; });
  };
  CHECK(!copies(picture, w));
  CHECK(copies(wide, wide_w));
}

TEST_CASE("A view of such images, and halfs, are convolved as their copies are", "[conv]") {
  generator gen(2);
  const tensor<float, 4> all = randn(gen, {4, 3, 12, 15}), w = randn(gen, {7, 3, 3, 3});
  const auto part = all.slice(3, 2, 13);
  CHECK(same_bits(eval(conv2d(part, w)), eval(conv2d(part.clone(), w))));
  const auto rounded = eval(cast<half>(all)), weights = eval(cast<half>(w));
  CHECK(
      same_bits(eval(conv2d(rounded, weights)), eval(cast<half>(conv2d(cast<float>(rounded), cast<float>(weights))))));
}

TEST_CASE("A convolution of planes has the same bits for any number of threads", "[conv]") {
  generator gen(3);
  const tensor<float, 4> x = randn(gen, {5, 3, 50, 61}), w = randn(gen, {33, 3, 5, 5});
  const auto with_threads = [&](int threads) {
    set_num_threads(threads);
    variable b(w.clone());
    const auto y = eval(conv2d(x, b, {.stride = 2, .padding = 2}));
    y.backward(ones<float>(y.shape()));
    return std::pair(y.value(), b.grad());
  };
  const int threads_before = num_threads();
  const auto [y, dw] = with_threads(1);
  for (const int threads : {2, 3, 4}) {
    const auto [y_more, dw_more] = with_threads(threads);
    CHECK(same_bits(y, y_more));
    CHECK(same_bits(dw, dw_more));
  }
  set_num_threads(threads_before);
}

TEST_CASE("Convolutions of one channel whose taps meet nothing", "[conv]") {
  generator gen(6);
  const variable<float, 4> x(randn(gen, {1, 8, 9, 3})), w(randn(gen, {1, 8, 3, 1}));
  eval(sum(conv2d(x, w, {.stride = {1, 2}}))).backward();
  CHECK(max(abs(x.grad().select(3, 1))).item() == 0);
  const variable<float, 4> wide(randn(gen, {2, 8, 7, 7})), dot(randn(gen, {1, 8, 1, 1}));
  eval(sum(conv2d(wide, dot, {.stride = 5, .dilation = 7}))).backward();
  CHECK(max(abs(wide.grad().select(3, 1))).item() == 0);
  const tensor<float, 4> none = relu(conv_transpose2d(randn(gen, {2, 20, 9, 20}), zeros<float>({20, 0, 3, 3})));
  CHECK(none.numel() == 0);
}

TEST_CASE("Gradients of biases over images of few channels are as accurate as others", "[conv]") {
  const tensor<float, 4> x = ones<float>({1, 3, 512, 512});
  const variable<float, 4> w(ones<float>({16, 3, 3, 3}));
  const variable<float, 1> b(zeros<float>({16}));
  variable y = conv2d(x, w, b, {.padding = 1});
  y.backward(full({1, 16, 512, 512}, 0.1f));
  CHECK(max(abs(b.grad() / (0.1f * 512 * 512) - 1)).item() < 2e-5f);
}
