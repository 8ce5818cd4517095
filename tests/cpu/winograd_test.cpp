// tests/cpu/winograd_test.cpp: convolutions by Winograd's tiles against plain loops in double.
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include <sinter/sinter.hpp>

#include "../catch.hpp"
#include "plain_convolution.hpp"
#include "sinter/cpu/detail/winograd_choice.hpp"

using namespace sinter;
using namespace plain_convolution;
using cpu_impl::conv_backward_data;
using cpu_impl::conv_backward_weights;
using cpu_impl::conv_forward;
using cpu_impl::dense_weights;
using cpu_impl::thread_pool;
namespace kernels = cpu_impl::detail;

namespace {

struct cuts {
  kernels::winograd_cut y, dx, dw;
};

/// How the three passes of a shape are computed.
cuts cuts_of(const conv_shape& s) {
  kernels::conv_axis forward[3], back[3];
  for (int a = 0; a < 3; ++a) {
    forward[a] = kernels::forward_axis(s, a);
    back[a] = ops::phase_of(s, a, 0).axis;
  }
  const index_t channels = s.channels / s.groups, filters = s.filters / s.groups;
  return {kernels::winograd_for<float>(forward, s.batch, channels, filters, kernels::winograd_use::weights),
          kernels::winograd_for<float>(back, s.batch, filters, channels, kernels::winograd_use::weights),
          kernels::winograd_for<float>(forward, s.batch, channels, filters, kernels::winograd_use::weight_gradient)};
}

struct results {
  std::vector<float> y, dx, dw, db;
};

struct operands {
  std::vector<float> x, w, dy, bias, bias_of_dx;
  explicit operands(const conv_shape& s)
      : x(values<float>(x_size(s), 1)),
        w(values<float>(w_size(s), 2)),
        dy(values<float>(y_size(s), 3)),
        bias(values<float>(s.filters, 4)),
        bias_of_dx(values<float>(s.channels, 5)) {}
};

/// All passes; what is added to is 3 everywhere.
results compute(const conv_shape& s, const conv_weight_strides& ws, const operands& o, bool add, bool with_bias,
                thread_pool& pool) {
  const auto filled = [](index_t n) { return std::vector<float>(static_cast<std::size_t>(n), 3.f); };
  results r{filled(y_size(s)), filled(x_size(s)), filled(w_size(s)), filled(with_bias ? s.filters : 0)};
  conv_forward<float>(s, o.x.data(), o.w.data(), ws, r.y.data(), add, {with_bias ? o.bias.data() : nullptr}, pool);
  conv_backward_data<float>(s, o.dy.data(), o.w.data(), ws, r.dx.data(), add,
                            {with_bias ? o.bias_of_dx.data() : nullptr}, pool);
  conv_backward_weights<float>(s, o.x.data(), o.dy.data(), r.dw.data(), ws, with_bias ? r.db.data() : nullptr, add,
                               pool);
  return r;
}

bool same(const results& a, const results& b) {
  const auto same_bits = [](const std::vector<float>& l, const std::vector<float>& r) {
    return std::memcmp(l.data(), r.data(), l.size() * sizeof(float)) == 0;
  };
  return same_bits(a.y, b.y) && same_bits(a.dx, b.dx) && same_bits(a.dw, b.dw) && same_bits(a.db, b.db);
}

struct exact_results {
  sums y, dx, dw, db;
};

exact_results plain(const conv_shape& s, const conv_weight_strides& ws, const operands& o, double before, bool bias) {
  const auto count = [](index_t n) { return static_cast<std::size_t>(n); };
  exact_results r{sums(count(y_size(s)), before), sums(count(x_size(s)), before), sums(count(w_size(s)), before),
                  sums(count(bias ? s.filters : 0), before)};
  const auto of = [](const std::vector<float>& v, index_t at) {
    return static_cast<double>(v[static_cast<std::size_t>(at)]);
  };
  for_products(s, ws, [&](index_t i, index_t j, index_t k) {
    r.y.add(k, of(o.x, i) * of(o.w, j));
    r.dx.add(i, of(o.dy, k) * of(o.w, j));
    r.dw.add(j, of(o.dy, k) * of(o.x, i));
  });
  if (!bias) return r;
  for (index_t i = 0; i < y_size(s); ++i) {
    r.y.add(i, of(o.bias, i % s.filters));
    r.db.add(i % s.filters, of(o.dy, i));
  }
  for (index_t i = 0; i < x_size(s); ++i) r.dx.add(i, of(o.bias_of_dx, i % s.channels));
  return r;
}

/// The root of the mean square of what is wrong, relative to that of the values.
double error_of(const std::vector<float>& got, const sums& expected) {
  double wrong = 0, all = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    wrong += std::pow(static_cast<double>(got[i]) - expected.value[i], 2);
    all += std::pow(expected.value[i], 2);
  }
  return std::sqrt(wrong / all);
}

conv_shape plane(index_t batch, index_t channels, index_t filters, index_t height, index_t width, index_t kernel,
                 index_t padding, index_t groups = 1) {
  return with_results({batch,
                       channels,
                       filters,
                       groups,
                       {1, height, width},
                       {},
                       {1, kernel, kernel},
                       {1, 1, 1},
                       {0, padding, padding},
                       {1, 1, 1}});
}

}  // namespace

TEST_CASE("convolutions by tiles equal the plain sums", "[winograd]") {
  thread_pool pool(3);
  for (const conv_shape& s : {
           plane(1, 17, 19, 27, 31, 3, 1),     // no multiples of anything
           plane(3, 33, 17, 21, 18, 3, 0),     // tiles within the image at the front
           plane(2, 19, 33, 19, 22, 3, 2),     // more results than pixels
           plane(9, 32, 48, 8, 8, 3, 1),       // whole tiles
           plane(80, 24, 70, 3, 4, 3, 1),      // tiles larger than the image
           plane(2, 17, 33, 20, 25, 5, 2),     // 5 x 5
           plane(3, 40, 36, 17, 15, 5, 0),     //
           plane(4, 16, 17, 20, 20, 5, 4),     //
           plane(2, 38, 34, 26, 27, 3, 1, 2),  // two groups
           plane(30, 32, 48, 5, 6, 5, 2),      //
           plane(1, 16, 400, 24, 24, 3, 1),    // parts of columns, of filters
           plane(1, 400, 16, 24, 24, 3, 1),    // blocks of channels
       })
    for (const bool add : {false, true}) {
      const bool bias = add == (s.batch % 2 == 0);
      const auto ws = add ? channels_last_weights(s) : dense_weights(s);
      INFO(s << (add ? ", added" : "") << (bias ? ", bias" : ""));
      const cuts by = cuts_of(s);
      const int tile = s.kernel[1] == 3 ? 4 : 2;
      CHECK(by.y.tile == tile);
      CHECK(by.dx.tile == tile);
      CHECK(by.dw.tile == tile);
      const operands o(s);
      const results got = compute(s, ws, o, add, bias, pool);
      const exact_results expected = plain(s, ws, o, add ? 3 : 0, bias);
      CHECK(wrong_elements(got.y, expected.y) == 0);
      CHECK(wrong_elements(got.dx, expected.dx) == 0);
      CHECK(wrong_elements(got.dw, expected.dw) == 0);
      CHECK(wrong_elements(got.db, expected.db) == 0);
    }
}

TEST_CASE("results that meet no pixel are not computed by tiles", "[winograd]") {
  const conv_shape s = plane(8, 32, 32, 24, 24, 3, 3);
  CHECK(cuts_of(s).y.tile == 0);
  CHECK(cuts_of(s).dw.tile == 0);
}

TEST_CASE("few tiles of many channels are small ones", "[winograd]") {
  thread_pool pool(2);
  const conv_shape s = plane(1, 160, 130, 14, 13, 3, 1);
  CHECK(cuts_of(s).y.tile == 2);
  CHECK(cuts_of(s).dx.tile == 2);
  const operands o(s);
  const results got = compute(s, dense_weights(s), o, false, true, pool);
  const exact_results expected = plain(s, dense_weights(s), o, 0, true);
  CHECK(wrong_elements(got.y, expected.y) == 0);
  CHECK(wrong_elements(got.dx, expected.dx) == 0);
}

TEST_CASE("convolutions by tiles give the same bits on any number of threads", "[winograd]") {
  thread_pool one(1), three(3), four(4);
  for (const conv_shape& s : {plane(8, 17, 34, 30, 29, 3, 1), plane(1, 32, 200, 24, 24, 3, 1),
                              plane(20, 24, 40, 9, 7, 5, 2), plane(1, 160, 130, 14, 13, 3, 1)}) {
    INFO(s);
    const operands o(s);
    const results expected = compute(s, dense_weights(s), o, false, true, one);
    CHECK(same(compute(s, dense_weights(s), o, false, true, three), expected));
    CHECK(same(compute(s, dense_weights(s), o, false, true, four), expected));
  }
}

TEST_CASE("convolutions by tiles give a sample the same results in any batch", "[winograd]") {
  thread_pool pool(2);
  const conv_shape whole = plane(7, 32, 24, 21, 22, 3, 1);
  const operands o(whole);
  const results expected = compute(whole, dense_weights(whole), o, false, true, pool);
  conv_shape one = whole;
  one.batch = 1;
  CHECK(cuts_of(one).y.tile == cuts_of(whole).y.tile);
  std::vector<float> y(static_cast<std::size_t>(y_size(one)));
  index_t wrong = 0;
  for (index_t n = 0; n < whole.batch; ++n) {
    conv_forward<float>(one, o.x.data() + n * x_size(one), o.w.data(), dense_weights(one), y.data(), false,
                        {o.bias.data()}, pool);
    wrong += std::memcmp(y.data(), expected.y.data() + n * y_size(one), y.size() * sizeof(float)) != 0;
  }
  CHECK(wrong == 0);
}

TEST_CASE("convolutions by tiles hand the epilogue every finished element once", "[winograd]") {
  thread_pool pool(3);
  // The last one has phases of 3 x 3 taps, whose results are two pixels apart.
  conv_shape phases = plane(2, 40, 36, 43, 38, 5, 2);
  phases.stride[1] = phases.stride[2] = 2;
  for (const conv_shape& s :
       {plane(3, 33, 150, 19, 23, 3, 1), plane(2, 60, 64, 22, 22, 5, 1, 2), with_results(phases)}) {
    INFO(s);
    const operands o(s);
    const auto ws = dense_weights(s);
    const bool strided = s.stride[1] == 2;
    CHECK(cuts_of(s).dx.tile > 0);
    const results once = compute(s, ws, o, false, true, pool);
    std::vector<float> y(once.y.size()), dx(once.dx.size());
    doubling of_y{y.data(), s.filters}, of_dx{dx.data(), s.channels};
    conv_forward<float>(s, o.x.data(), o.w.data(), ws, y.data(), false, {o.bias.data(), {doubling::run, &of_y}}, pool);
    conv_backward_data<float>(s, o.dy.data(), o.w.data(), ws, dx.data(), false,
                              {o.bias_of_dx.data(), {doubling::run, &of_dx}}, pool);
    index_t wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) wrong += y[i] != 2 * once.y[i];
    for (std::size_t i = 0; i < dx.size(); ++i) wrong += dx[i] != 2 * once.dx[i];
    CHECK(wrong == 0);
    if (strided) CHECK(wrong_elements(once.dx, plain(s, ws, o, 0, true).dx) == 0);
  }
}

TEST_CASE("convolutions by tiles are as exact as documented", "[winograd]") {
  thread_pool pool(2);
  for (const conv_shape& s : {plane(4, 16, 20, 16, 16, 3, 1), plane(1, 64, 24, 20, 20, 3, 1),
                              plane(1, 192, 16, 24, 16, 3, 1), plane(2, 32, 24, 14, 14, 5, 2)}) {
    INFO(s);
    CHECK(cuts_of(s).y.tile > 0);
    operands o(s);
    for (float& x : o.x) x = x > 0 ? x : 0;  // as behind a relu
    const results got = compute(s, dense_weights(s), o, false, false, pool);
    const exact_results expected = plain(s, dense_weights(s), o, 0, false);
    const auto bound = [](index_t channels) { return 2e-6 * std::sqrt(static_cast<double>(channels) / 64); };
    CHECK(error_of(got.y, expected.y) < bound(s.channels));
    CHECK(error_of(got.dx, expected.dx) < bound(s.filters));
    CHECK(error_of(got.dw, expected.dw) < 2e-6);
    const exact_convolution exact;
    CHECK(error_of(compute(s, dense_weights(s), o, false, false, pool).y, expected.y) < 0.4 * bound(s.channels));
  }
}

TEST_CASE("a NaN reaches the results of its tiles only", "[winograd]") {
  thread_pool pool(2);
  const conv_shape s = plane(1, 32, 32, 24, 24, 3, 1);
  CHECK(cuts_of(s).y.tile == 4);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    operands o(s);
    o.x[static_cast<std::size_t>((9 * 24 + 14) * 32 + 5)] = bad;  // of the tiles at rows 8 and columns 12
    std::vector<float> y(static_cast<std::size_t>(y_size(s)));
    conv_forward<float>(s, o.x.data(), o.w.data(), dense_weights(s), y.data(), false, {}, pool);
    index_t wrong = 0;
    for (index_t h = 0; h < 24; ++h)
      for (index_t v = 0; v < 24; ++v)
        for (index_t f = 0; f < 32; ++f) {
          const bool met = std::abs(h - 9) <= 1 && std::abs(v - 14) <= 1, in_tile = h / 4 == 2 && v / 4 == 3;
          const bool finite = std::isfinite(y[static_cast<std::size_t>((h * 24 + v) * 32 + f)]);
          wrong += met ? finite : !in_tile && !finite;
        }
    CHECK(wrong == 0);
  }
}

TEST_CASE("under exact_convolution convolutions are plain sums, forward and backward", "[winograd]") {
  generator gen(1);
  const variable x = randn<float>(gen, {2, 24, 20, 20}), w = randn<float>(gen, {16, 24, 3, 3});
  const tensor seed = randn<float>(gen, {2, 16, 20, 20});
  const auto results_of = [&](bool exact_forward, bool exact_backward) {
    x.zero_grad();
    w.zero_grad();
    const auto forward = [&]() -> variable<float, 4> { return conv2d(x, w, {.padding = 1}); };
    const auto y = [&] {
      if (!exact_forward) return forward();
      const exact_convolution outer;
      {
        const exact_convolution inner;
      }
      CHECK(exact_convolution::now());
      return forward();
    }();
    if (exact_backward) {
      const exact_convolution guard;
      y.backward(seed);
    } else {
      y.backward(seed);
    }
    CHECK_FALSE(exact_convolution::now());
    return std::array{eval(y.value() + 0.f), eval(x.grad() + 0.f), eval(w.grad() + 0.f)};
  };
  const auto differ = [](const tensor<float, 4>& a, const tensor<float, 4>& b) { return max(abs(a - b)).item(); };
  const auto exact = results_of(true, true), tiles = results_of(false, false), forward_only = results_of(true, false);
  for (std::size_t i = 0; i < 3; ++i) {
    CHECK(differ(exact[i], tiles[i]) > 0);
    CHECK(differ(exact[i], tiles[i]) < 1e-4 * max(abs(exact[i])).item());
    CHECK((differ(exact[i], forward_only[i]) > 0) == (i > 0));
  }
}
