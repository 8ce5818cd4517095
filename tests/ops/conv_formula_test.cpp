// tests/ops/conv_formula_test.cpp: convolutions of formulas, which are computed where the convolution reads them.
#include <sinter/sinter.hpp>

#include "../same_bits.hpp"
#include "catch.hpp"

using namespace sinter;

namespace {

struct layer {
  index_t channels, filters, taps, extent;
  conv_options<2> options;
  index_t width = extent, batch = 5;
};

/// Value and gradients of a convolution of relu((x - 0.5) s + t).
auto results_of(const layer& l, bool stored) {
  generator gen(1);
  const extents<3> each{{l.channels, 1, 1}};
  const variable x(randn<float>(gen, {l.batch, l.channels, l.extent, l.width}).to_memory_format(channels_last));
  const variable scale(randn<float>(gen, each));
  const variable shift(randn<float>(gen, each));
  const variable w(randn<float>(gen, {l.filters, l.channels / l.options.groups, l.taps, l.taps}));
  const variable b(randn<float>(gen, {l.filters}));
  const auto run = [&](const auto& h) {
    const variable y = conv2d(h, w, b, l.options);
    sum(y * y).backward();
    return std::make_tuple(y.value(), x.grad(), scale.grad(), shift.grad(), w.grad(), b.grad());
  };
  const auto formula = relu((x - 0.5f) * scale + shift);
  if (!stored) return run(formula);
  const variable<float, 4> h = formula;
  return run(h);
}

}  // namespace

TEST_CASE("A convolution of a formula has the bits of one of its value", "[conv]") {
  const layer layers[] = {
      {16, 16, 3, 32, {.padding = 1}},                                  // by tiles, an image in each block
      {24, 20, 5, 20, {.padding = 2}},                                  // by tiles of 5 x 5
      {130, 140, 3, 10, {.padding = 1}},                                // by tiles, weights in several parts
      {3, 8, 3, 9, {.stride = 2, .padding = 1}},                        // plain sums
      {64, 256, 1, 14, {}},                                             // products, gradients with x packed
      {256, 64, 1, 7, {}},                                              // the same the other way round
      {64, 32, 1, 15, {.stride = 2}},                                   // every other pixel
      {8, 8, 3, 9, {.padding = 1, .padding_mode = pad_mode::reflect}},  // a copy is made
      {8, 8, 3, 9, {.padding = 1, .groups = 2}},                        // evaluated first
      {8, 8, 3, 9, {.padding = 1, .groups = 8}},                        // the same
      {16, 16, 3, 12, {.padding = 2, .dilation = 2}},                   // taps apart
      {700, 4, 2, 3, {}},                                               // more channels than a block
      {4, 3, 3, 5, {.padding = 1}, 700, 2},                             // lines longer than a task
      {16, 16, 3, 6, {.padding = 1}, 300, 1},                           // by tiles, the same
      {8, 2, 3, 70, {.padding = 16, .dilation = 16}},                   // each task reads most of the image: made once
      {5, 4, 3, 0, {.padding = 2}, 5},                                  // an empty image with results
      {16, 16, 3, 8, {.padding = 1}, 8, 0},                             // no images
  };
  const int before = num_threads();
  for (const layer& l : layers)
    for (const int threads : {1, 3}) {
      INFO(l.channels << " channels, " << l.filters << " filters, " << l.taps << " taps, " << threads << " threads");
      set_num_threads(threads);
      const auto stored = results_of(l, true), made = results_of(l, false);
      const bool same = std::apply(
          [&](const auto&... a) {
            return std::apply([&](const auto&... b) { return (same_bits(a, b) && ...); }, made);
          },
          stored);
      CHECK(same);
    }
  set_num_threads(before);
}

TEST_CASE("A convolution of a formula over one and three axes", "[conv]") {
  generator gen(2);
  const variable line(randn<double>(gen, {3, 4, 1700}).to_memory_format(channels_last));
  const variable taps(randn<double>(gen, {5, 4, 3}));
  const variable<double, 3> doubled = line * 2.0;
  const variable of_value = conv1d(doubled, taps, {.padding = 1});
  const variable of_formula = conv1d(line * 2.0, taps, {.padding = 1});
  CHECK(same_bits(of_value.value(), of_formula.value()));
  const variable volume(randn<double>(gen, {2, 3, 5, 6, 4}));
  const variable block(randn<double>(gen, {4, 3, 3, 2, 2}));
  const auto gradients = [&](const auto& h) {
    const variable y = conv3d(h, block, {.stride = {2, 1, 1}, .padding = {1, 0, 1}});
    volume.zero_grad();
    block.zero_grad();
    sum(y * y).backward();
    return std::make_tuple(y.value(), volume.grad(), block.grad());
  };
  const variable<double, 5> value = relu(-volume);
  const auto a = gradients(value), b = gradients(relu(-volume));
  CHECK(same_bits(std::get<0>(a), std::get<0>(b)));
  CHECK(same_bits(std::get<1>(a), std::get<1>(b)));
  CHECK(same_bits(std::get<2>(a), std::get<2>(b)));
}

TEST_CASE("The value of a formula that a convolution reads is not kept", "[conv]") {
  generator gen(3);
  const variable x(randn<float>(gen, {4, 64, 32, 32}).to_memory_format(channels_last));
  const variable w(randn<float>(gen, {8, 64, 3, 3}));
  const std::size_t before = memory<cpu>().bytes_in_use;
  const variable y = conv2d(relu(x * 2.0f), w);
  const std::size_t more = memory<cpu>().bytes_in_use - before;
  CHECK(more < static_cast<std::size_t>(x.numel()) * sizeof(float));  // y alone is an eighth of that
  // What is expensive to compute again is kept.
  const variable z = conv2d(tanh(x), w);
  CHECK(memory<cpu>().bytes_in_use - before - more > static_cast<std::size_t>(x.numel()) * sizeof(float));
}

TEST_CASE("A formula that was written to is not computed again", "[conv]") {
  generator gen(4);
  const variable x(randn<float>(gen, {2, 4, 8, 8}));
  const variable w(randn<float>(gen, {4, 4, 3, 3}));
  const variable y = conv2d(x * 2.0f, w);
  x.value().in_place() += 1.0f;
  CHECK_THROWS_AS(sum(y).backward(), autograd_error);
}

TEST_CASE("A padding mode that does not fit a formula is an error at once", "[conv]") {
  const tensor x = ones<float>({1, 2, 4, 4});
  const tensor w = ones<float>({2, 2, 3, 3});
  const conv_options<2> wide{.padding = 9, .padding_mode = pad_mode::reflect};
  CHECK_THROWS_AS(conv2d(x * 2.0f, w, wide), shape_error);
  CHECK_THROWS_AS(conv2d(x, w, wide), shape_error);
}

TEST_CASE("explain names a formula that a convolution reads", "[conv]") {
  generator gen(5);
  const variable x(randn<float>(gen, {2, 4, 8, 8}).to_memory_format(channels_last));
  const variable w(randn<float>(gen, {4, 4, 3, 3}));
  CHECK_THAT(explain(conv2d(relu(x * 2.0f), w)),
             Catch::Contains("conv2d(relu(multiply(variable(2, 4, 8, 8), 2)), variable"));
}

TEST_CASE("explain names the value of a formula that is computed before a convolution", "[conv]") {
  generator gen(5);
  const auto x = randn<float>(gen, {2, 4, 8, 8}).to_memory_format(channels_last);
  const auto w = randn<float>(gen, {4, 4, 3, 3}), narrow = randn<float>(gen, {4, 2, 3, 3});
  const std::string value = "k1 = multiply(tensor(2, 4, 8, 8), 2)  [4096 bytes]\n";
  const std::string grouped = explain(conv2d(x * 2.0f, narrow, {.groups = 2}));
  CHECK(grouped ==
        value + "k2 = conv2d(k1, tensor(4, 2, 3, 3))  [3488 bytes]\n2 kernels, 7584 bytes on cpu, allocates\n");
  CHECK_THAT(explain(conv2d(x.contiguous() * 2.0f, w)), Catch::StartsWith(value + "k2 = conv2d(k1, "));
  const auto around = conv2d(x * 2.0f, w, {.padding = 1, .padding_mode = pad_mode::reflect});
  CHECK_THAT(explain(around), Catch::StartsWith(value + "k2 = pad(k1)  [5248 bytes]\nk3 = conv2d(k2, "));
  CHECK_THAT(explain(conv3d(x.unsqueeze(2) * 2.0f, w.unsqueeze(2))), Catch::Contains("k2 = conv3d(k1, "));
  CHECK_THAT(explain(conv2d(x * 2.0f, w)), Catch::StartsWith("k1 = conv2d(multiply("));
}
