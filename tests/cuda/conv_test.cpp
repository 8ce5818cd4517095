// tests/cuda/conv_test.cpp: convolutions on a GPU by each of their ways: one product, chunks of patches, channel by
// channel.
#include "compare.hpp"

using namespace sinter;
using compare::numbers;
using g0 = cuda<0>;

namespace {

constexpr double tolerance = 1e-4;

/// Room for few rows of patches while it lives, so that small operands make several chunks.
struct small_chunks {
  std::size_t before = cuda_impl::most_patch_bytes.exchange(3000);
  ~small_chunks() { cuda_impl::most_patch_bytes = before; }
};

/// Values and gradients of f with patches as a whole and in chunks, and gradients that are added to others.
template <class F, class... T>
void check(const F& f, const T&... at) {
  CHECK(compare::values(f, at...) < tolerance);
  CHECK(compare::gradients(f, at...) < 10 * tolerance);
  const small_chunks chunks;
  CHECK(compare::values(f, at...) < tolerance);
  CHECK(compare::gradients(f, at...) < 10 * tolerance);
}

}  // namespace

TEST_CASE("convolutions on a GPU give what they give on the CPU", "[cuda]") {
  const auto x = numbers({2, 8, 7, 6}), w = numbers({12, 8, 3, 3}, 2), narrow = numbers({2, 3, 9, 8}, 3);
  const auto b = numbers({12}, 4);
  const auto with = [](const conv_options<2>& o) {
    return [o](const auto& in, const auto& weights, const auto& bias) { return eval(conv2d(in, weights, bias, o)); };
  };
  check(with({.padding = 1}), x, w, b);
  check(with({.stride = 2, .padding = 1}), x, w, b);
  check(with({.stride = {3, 2}, .padding = {0, 2}, .dilation = {1, 2}}), x, w, b);
  check(with({.padding = padding::same}), x, numbers({12, 8, 2, 4}, 2), b);        // more zeros behind than in front
  check(with({.stride = 2, .padding = 3}), narrow, numbers({12, 3, 7, 7}, 2), b);  // rows of patches are padded
  check(with({}), x, numbers({12, 8, 1, 1}, 2), b);
  check(with({.stride = 2}), x, numbers({12, 8, 1, 1}, 2), b);
  check(with({.padding = 1}), x, numbers({12, 8, 1, 1}, 2), b);
  check(with({.padding = 1, .groups = 4}), x, numbers({12, 2, 3, 3}, 2), b);
  check(with({.groups = 4}), x, numbers({12, 2, 1, 1}, 2), b);
  check(with({.stride = 2, .padding = 1, .groups = 2}), x, numbers({12, 4, 3, 2}, 2), b);
}

TEST_CASE("channels that do not mix go their own way on a GPU", "[cuda]") {
  const auto with = [](const conv_options<2>& o) {
    return [o](const auto& in, const auto& weights) { return eval(conv2d(in, weights, o)); };
  };
  const auto x = numbers({2, 8, 7, 6}), w = numbers({8, 1, 3, 3}, 2);  // four channels at a time
  check(with({.padding = 1, .groups = 8}), x, w);
  check(with({.stride = 2, .padding = 1, .groups = 8}), x, w);
  check(with({.stride = {1, 3}, .padding = 2, .dilation = 2, .groups = 8}), x, w);
  check(with({.padding = 1, .groups = 8}), x, numbers({16, 1, 3, 2}, 2));  // two filters for each channel
  check(with({.padding = 1, .groups = 3}), numbers({3, 3, 5, 4}), numbers({3, 1, 3, 3}, 2));
  // many pixels and filters: several parts and tiles
  check(with({.padding = 1, .groups = 136}), numbers({2, 136, 20, 9}), numbers({136, 1, 3, 3}, 2));
  check([](const auto& in, const auto& weights,
           const auto& bias) { return eval(conv2d(in, weights, bias, {.groups = 8})); },
        x, numbers({8, 1, 1, 1}, 2), numbers({8}, 3));
}

TEST_CASE("transposed convolutions and other numbers of axes on a GPU", "[cuda]") {
  const auto spread = [](const conv_transpose_options<2>& o) {
    return [o](const auto& in, const auto& weights, const auto& bias) {
      return eval(conv_transpose2d(in, weights, bias, o));
    };
  };
  const auto x = numbers({2, 8, 5, 4});
  const auto b = numbers({4}, 3);
  check(spread({.padding = 1}), x, numbers({8, 4, 3, 3}, 2), b);
  check(spread({.stride = 2, .padding = 1, .output_padding = 1}), x, numbers({8, 4, 3, 3}, 2), b);
  check(spread({.stride = 3}), x, numbers({8, 4, 2, 2}, 2), b);  // results that no window meets
  check(spread({.stride = 2, .groups = 2, .dilation = 3}), x, numbers({8, 2, 3, 2}, 2), b);
  check(spread({}), x, numbers({8, 4, 1, 1}, 2), b);
  check(spread({.stride = 2, .groups = 8}), x, numbers({8, 1, 3, 3}, 2), numbers({8}, 3));
  check([](const auto& in, const auto& w) { return eval(conv1d(in, w, {.stride = 2, .padding = 2})); },
        numbers({3, 4, 11}), numbers({8, 4, 5}, 2));
  check([](const auto& in, const auto& w) { return eval(conv3d(in, w, {.stride = {1, 2, 1}, .padding = 1})); },
        numbers({2, 4, 3, 5, 4}), numbers({5, 4, 2, 3, 3}, 2));
}

TEST_CASE("convolutions of other elements, layouts and of nothing on a GPU", "[cuda]") {
  const auto same = [](const auto& in, const auto& w) { return eval(conv2d(in, w, {.padding = 1})); };
  const auto depthwise = [](const auto& in, const auto& w) {
    return eval(conv2d(in, w, {.padding = 1, .groups = 16}));
  };
  {
    const small_chunks chunks;
    CHECK(compare::values(same, numbers<double>({2, 6, 5, 4}), numbers<double>({4, 6, 3, 3}, 2)) < 1e-12);
    CHECK(compare::gradients(same, numbers<double>({2, 6, 5, 4}), numbers<double>({4, 6, 3, 3}, 2)) < 1e-11);
    CHECK(compare::values(same, numbers<sinter::half>({2, 16, 5, 4}), numbers<sinter::half>({8, 16, 3, 3}, 2)) < 2e-3);
    CHECK(compare::gradients(same, numbers<sinter::half>({2, 16, 5, 4}), numbers<sinter::half>({8, 16, 3, 3}, 2)) <
          4e-3);
    CHECK(compare::values(same, numbers<bfloat16>({2, 3, 5, 4}), numbers<bfloat16>({8, 3, 3, 3}, 2)) < 0.02);
    CHECK(compare::values(depthwise, numbers<sinter::half>({2, 16, 5, 4}), numbers<sinter::half>({16, 1, 3, 3}, 2)) <
          2e-3);
    CHECK(compare::gradients(depthwise, numbers<sinter::half>({2, 16, 5, 4}), numbers<sinter::half>({16, 1, 3, 3}, 2)) <
          4e-3);
  }
  const auto of_views = [&](const auto& in, const auto& w) {
    return same(eval(in * 2).to_memory_format(channels_last).slice(0, 1, 3).slice(1, 1, 7), w.transpose(2, 3));
  };
  check(of_views, numbers({3, 8, 5, 4}), numbers({4, 6, 3, 3}, 2));
  check([&](const auto& in, const auto& w) { return same(in, w.flip(2).slice(1, 0, 12, 2)); }, numbers({2, 6, 5, 4}),
        numbers({4, 12, 3, 3}, 2));
  check([&](const auto& in, const auto& w) { return same(in, eval(w * 2).to_memory_format(channels_last)); },
        numbers({2, 8, 5, 4}), numbers({4, 8, 3, 3}, 2));
  const auto biased = [](const auto& in, const auto& w, const auto& bias) {
    return eval(conv2d(in, w, bias, {.padding = 1}));
  };
  check(biased, numbers({0, 4, 5, 4}), numbers({8, 4, 3, 3}, 2), numbers({8}, 3));
  check(biased, numbers({2, 0, 5, 4}), numbers({8, 0, 3, 3}, 2), numbers({8}, 3));
  check(biased, numbers({2, 4, 5, 4}), numbers({0, 4, 3, 3}, 2), numbers({0}, 3));
  check([](const auto& in, const auto& w) { return eval(conv2d(in, w, {.groups = 4})); }, numbers({0, 4, 5, 4}),
        numbers({4, 1, 3, 3}, 2));
}

TEST_CASE("a bias and relu run inside the product of a convolution", "[cuda]") {
  const auto x = numbers({2, 8, 5, 4}), w = numbers({12, 8, 3, 3}, 2), point = numbers({12, 8, 1, 1}, 2);
  const auto b = numbers({12}, 4);
  const auto active = [](const auto& in, const auto& weights, const auto& bias) {
    return eval(relu(conv2d(in, weights, bias.slice(0, bias.numel() - 12, bias.numel()))));
  };
  const auto launches_of = [&](const auto& weights, const auto& bias) {
    const auto in = x.to<g0>().to_memory_format(channels_last), there = weights.template to<g0>();
    const auto bias_there = bias.template to<g0>();
    const auto before = launches<g0>();
    const auto y = active(in, there, bias_there);
    const auto n = launches<g0>() - before;
    CHECK(compare::distance(y, active(x, weights, bias)) < tolerance);
    return n;
  };
  const auto within = [](std::size_t n, std::size_t least, std::size_t most) {
    return n == least || (SINTER_WITH_CUDA && n > least && n <= most);  // a BLAS may have no algorithm for it
  };
  CHECK(within(launches_of(point, b), 1, 3));
  CHECK(within(launches_of(w, b), SINTER_WITH_CUDNN ? 2 : 3, 5));  // weights, patches, product
  CHECK(launches_of(point, numbers({13}, 4)) == 3);                // a bias off the alignment
  check(active, x, w, b);
  // work that only looks like a bias of the columns
  check([](const auto& in, const auto& weights, const auto& row) { return eval(conv2d(in, weights) + row); },
        numbers({2, 8, 5, 14}), w, b);
#if !SINTER_WITH_CUDA
  cuda_impl::gpu<g0>::has_tails() = false;
  CHECK(launches_of(point, b) == 3);
  check(active, x, w, b);
  cuda_impl::gpu<g0>::has_tails() = true;
#endif
}

TEST_CASE("a convolution takes no more memory beside its results than it says", "[cuda]") {
  const auto x = numbers({8, 16, 20, 20}).to<g0>().to_memory_format(channels_last),
             w = numbers({16, 16, 3, 3}, 2).to<g0>();
  const std::size_t workspace = SINTER_WITH_CUDNN ? 256 << 20 : SINTER_WITH_CUDA ? 32 << 20 : 4096;
  const auto before = cuda_impl::most_patch_bytes.exchange(100000);
  empty_cache<g0>();
  reset_peak_memory<g0>();
  const auto in_use = memory<g0>().bytes_in_use;
  const auto y = eval(conv2d(x, w, {.padding = 1}));
  const auto own = memory<g0>().bytes_in_use - in_use, packed = static_cast<std::size_t>(w.numel()) * sizeof(float);
  CHECK(memory<g0>().peak_bytes - in_use <= own + packed + 100000 + workspace);
  cuda_impl::most_patch_bytes = before;
}

#if !SINTER_WITH_CUDA
TEST_CASE("a library does the convolutions that it takes, and those that it then refuses go the usual way", "[cuda]") {
  using library = cuda_impl::simulated_library;
  const auto x = numbers({2, 8, 7, 6}), w = numbers({12, 8, 3, 3}, 2);
  const auto b = numbers({12}, 4);
  const auto active = [](const auto& in, const auto& weights, const auto& bias) {
    return eval(relu(conv2d(in, weights, bias, {.stride = 2, .padding = 1})));
  };
  const auto bare = [](const auto& in, const auto& weights) { return eval(relu(conv2d(in, weights, {.groups = 2}))); };
  const auto spread = [](const auto& in, const auto& weights, const auto& bias) {
    return eval(conv_transpose2d(in, weights, bias, {.stride = 2}));
  };
  library::is_there = true;
  for (const bool refuses : {false, true}) {
    library::refuses_to_run = refuses;
    check(active, x, w, b);
    check(bare, x, numbers({12, 4, 3, 3}, 2));
    check(spread, x, numbers({8, 4, 3, 3}, 2), numbers({4}, 3));
    check([&](const auto& in,
              const auto& weights) { return bare(in, eval(weights * 1).to_memory_format(channels_last)); },
          x, numbers({12, 4, 3, 3}, 2));
    check([](const auto& in, const auto& weights) { return eval(conv3d(in, weights, {.stride = 2})); },
          numbers({2, 3, 5, 6, 4}), numbers({4, 3, 2, 3, 3}, 2));
    CHECK(compare::gradients(bare, numbers<sinter::half>({2, 8, 5, 4}), numbers<sinter::half>({4, 4, 3, 3}, 2)) < 4e-3);
  }
  library::refuses_to_run = false;
  const auto x_there = x.to<g0>().to_memory_format(channels_last), w_there = w.to<g0>();
  const auto b_there = b.to<g0>();
  const auto before = launches<g0>();
  active(x_there, w_there, b_there);
  CHECK(launches<g0>() - before == 2);  // weights, and all else in one
  library::is_there = false;
}
#endif
