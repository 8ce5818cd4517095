// tests/cpu/convolution_test.cpp: the convolutions of the host devices against plain loops in double.
#include "sinter/cpu/convolution.hpp"

#include <cstring>

#include "../catch.hpp"
#include "plain_convolution.hpp"

using sinter::cpu_impl::conv_backward_data;
using sinter::cpu_impl::conv_backward_weights;
using sinter::cpu_impl::conv_forward;
using sinter::cpu_impl::dense_weights;
using sinter::cpu_impl::thread_pool;

using namespace plain_convolution;

namespace {

template <class T>
struct results {
  std::vector<T> y, dx, dw, db;
};

/// All passes; what is added to is 3 everywhere.
template <class T>
results<T> compute(const conv_shape& s, const conv_weight_strides& ws, bool add, bool with_bias, thread_pool& pool) {
  const auto x = values<T>(x_size(s), 1), w = values<T>(w_size(s), 2), dy = values<T>(y_size(s), 3),
             bias = values<T>(s.filters, 4);
  const auto filled = [](index_t n) { return std::vector<T>(static_cast<std::size_t>(n), T(3)); };
  results<T> r{filled(y_size(s)), filled(x_size(s)), filled(w_size(s)), filled(with_bias ? s.filters : 0)};
  conv_forward<T>(s, x.data(), w.data(), ws, r.y.data(), add, {with_bias ? bias.data() : nullptr}, pool);
  conv_backward_data<T>(s, dy.data(), w.data(), ws, r.dx.data(), add, {}, pool);
  conv_backward_weights<T>(s, x.data(), dy.data(), r.dw.data(), ws, with_bias ? r.db.data() : nullptr, add, pool);
  return r;
}

template <class T>
void check(const conv_shape& s, const conv_weight_strides& ws, bool add, bool with_bias, thread_pool& pool) {
  const results<T> got = compute<T>(s, ws, add, with_bias, pool);
  const auto x = values<T>(x_size(s), 1), w = values<T>(w_size(s), 2), dy = values<T>(y_size(s), 3),
             bias = values<T>(s.filters, 4);
  const double before = add ? 3 : 0;
  sums y(got.y.size(), before), dx(got.dx.size(), before), dw(got.dw.size(), before), db(got.db.size(), before);
  for_products(s, ws, [&](index_t i, index_t j, index_t k) {
    const auto of = [](const std::vector<T>& v, index_t at) {
      return static_cast<double>(v[static_cast<std::size_t>(at)]);
    };
    y.add(k, of(x, i) * of(w, j));
    dx.add(i, of(dy, k) * of(w, j));
    dw.add(j, of(dy, k) * of(x, i));
  });
  if (with_bias)
    for (index_t i = 0; i < y_size(s); ++i) {
      const auto at = static_cast<std::size_t>(i), filter = static_cast<std::size_t>(i % s.filters);
      y.add(i, static_cast<double>(bias[filter]));
      db.add(static_cast<index_t>(filter), static_cast<double>(dy[at]));
    }
  INFO(s << (add ? ", added" : "") << (with_bias ? ", bias" : ""));
  CHECK(wrong_elements(got.y, y) == 0);
  CHECK(wrong_elements(got.dx, dx) == 0);
  CHECK(wrong_elements(got.dw, dw) == 0);
  CHECK(wrong_elements(got.db, db) == 0);
}

/// Small shapes of all kinds: 1 to 3 axes, strides beyond the kernel, padding beyond it, few results or none.
conv_shape any_shape(sequence& numbers) {
  const index_t kind = numbers.below(4), rank = numbers.between(1, 3);
  const index_t groups = kind == 2 ? numbers.between(2, 3) : kind == 3 ? numbers.between(2, 40) : 1;
  conv_shape s{numbers.between(0, 3), 0, 0, groups, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1}};
  s.channels = groups * (kind == 3 ? 1 : numbers.between(1, 21));
  s.filters = groups * (kind == 3 ? 1 : numbers.between(1, 37));
  for (int a = 3 - static_cast<int>(rank); a < 3; ++a) {
    s.in[a] = numbers.between(1, rank == 1 ? 60 : rank == 2 ? 12 : 6);
    s.kernel[a] = numbers.between(1, rank == 3 ? 3 : 5);
    s.stride[a] = numbers.below(2) == 0 ? 1 : numbers.between(1, 7);
    s.dilation[a] = numbers.below(2) == 0 ? 1 : numbers.between(1, 6);
    s.padding[a] = numbers.below(2) == 0 ? s.kernel[a] / 2 : numbers.between(0, 9);
  }
  if (rank < 3 && groups == 1 && numbers.below(3) == 0) {  // channel by channel
    s.channels = 1;
    s.in[0] = s.kernel[0] = numbers.between(1, 4);
  }
  return with_results(s, numbers.below(3));
}

/// The same with images of several channels, one after the other: see conv_extents::of_planes.
conv_shape planes(conv_shape s, index_t channels) {
  s.in[0] = s.kernel[0] = channels;
  return with_results(s, 0);
}

}  // namespace

TEMPLATE_TEST_CASE("convolutions of all shapes equal the plain sums", "[convolution]", float, double) {
  thread_pool pool(2);
  sequence numbers;
  for (int i = 0; i < 400; ++i) {
    const conv_shape s = any_shape(numbers);
    check<TestType>(s, i % 3 == 0 ? channels_last_weights(s) : dense_weights(s), i % 2 == 1, i % 4 < 2, pool);
  }
}

TEMPLATE_TEST_CASE("convolutions equal the plain sums beyond every block", "[convolution]", float, double) {
  thread_pool pool(3);
  for (const conv_shape& s : {
           square(2, 64, 40, 14, 3, 1, 1),   // several blocks of k
           square(1, 200, 310, 5, 3, 1, 1),  // several chunks of columns, of filters
           square(3, 3, 19, 37, 7, 2, 3),    // short segments
           planes(square(3, 1, 19, 37, 7, 2, 3), 3),
           planes(square(40, 1, 70, 5, 3, 1, 1), 4),
           planes({1, 1, 33, 1, {1, 1, 5000}, {}, {1, 1, 400}, {1, 1, 2}, {0, 0, 9}, {1, 1, 1}}, 2),  // a long line
           square(2, 70, 33, 17, 1, 1, 0),                                                            // a plain product
           square(2, 32, 70, 17, 1, 1, 0),  // and one with few channels
           square(2, 70, 33, 17, 1, 2, 0),  // phases without taps
           square(5, 530, 70, 7, 1, 2, 3),  // most results outside of the image
           square(3, 20, 40, 6, 2, 1, 4),
           square(2, 32, 36, 19, 3, 1, 2, 2),  // taps apart
           square(4, 16, 16, 30, 3, 1, 1),     // few filters
           square(3, 48, 15, 13, 3, 2, 1),
           square(1, 65, 65, 20, 5, 1, 2, 1, 65),  // channel by channel
           with_results({2, 20, 20, 20, {6, 9, 11}, {}, {5, 7, 3}, {1, 1, 1}, {2, 3, 1}, {1, 1, 1}}, 0),  // many rows
           planes(square(3, 1, 21, 16, 3, 1, 1), 2),  // one vector of filters
           planes(square(2, 1, 21, 40, 3, 1, 1), 1),
           planes(square(2, 1, 21, 48, 3, 1, 1), 3),  // a strip and a half, with 16 lanes; with 8
           planes(square(2, 1, 21, 24, 3, 1, 1), 3),
           planes(square(5, 1, 16, 64, 3, 2, 1), 3),  // several lines at once
           square(2, 3, 19, 90, 7, 2, 3),  // pixels as lanes in the image's gradient, several blocks of lines
           square(2, 1, 32, 70, 5, 1, 2),
           square(1, 4, 9, 67, 3, 3, 0, 2),
           square(1, 2, 8, 50, 2, 5, 1),
           square(2, 96, 64, 12, 3, 2, 1, 1, 4),
       })
    for (const bool with_bias : {false, true}) check<TestType>(s, dense_weights(s), false, with_bias, pool);
}

TEMPLATE_TEST_CASE("convolutions give the same bits on any number of threads", "[convolution]", float, double) {
  thread_pool one(1), two(2), three(3);
  for (const conv_shape& s :
       {square(3, 20, 40, 15, 3, 1, 1), square(4, 3, 24, 33, 5, 2, 2), square(2, 130, 150, 7, 3, 1, 1),
        square(5, 40, 40, 20, 3, 1, 1, 1, 40), square(2, 24, 48, 16, 3, 2, 1, 1, 3), square(1, 64, 300, 4, 1, 1, 0),
        square(6, 16, 16, 16, 3, 1, 1)}) {
    INFO(s);
    const auto expected = compute<TestType>(s, dense_weights(s), false, true, one);
    for (thread_pool* pool : {&two, &three}) {
      const auto got = compute<TestType>(s, dense_weights(s), false, true, *pool);
      const auto same = [](const std::vector<TestType>& a, const std::vector<TestType>& b) {
        return std::memcmp(a.data(), b.data(), a.size() * sizeof(TestType)) == 0;
      };
      CHECK(same(got.y, expected.y));
      CHECK(same(got.dx, expected.dx));
      CHECK(same(got.dw, expected.dw));
      CHECK(same(got.db, expected.db));
    }
  }
}

TEST_CASE("convolutions hand the epilogue every finished element once", "[convolution]") {
  thread_pool pool(3);
  for (const conv_shape& s :
       {square(2, 17, 200, 9, 3, 1, 1), square(2, 48, 48, 12, 3, 2, 1, 1, 3), square(1, 60, 18, 11, 3, 3, 1, 2),
        square(2, 12, 12, 9, 3, 2, 1, 1, 12), square(3, 530, 20, 7, 1, 2, 3)}) {
    INFO(s);
    const auto x = values<float>(x_size(s), 1), w = values<float>(w_size(s), 2), dy = values<float>(y_size(s), 3),
               of_filters = values<float>(s.filters, 4), of_channels = values<float>(s.channels, 5);
    std::vector<float> y(static_cast<std::size_t>(y_size(s))), dx(static_cast<std::size_t>(x_size(s)));
    auto y_twice = y, dx_twice = dx;
    doubling of_y{y_twice.data(), s.filters}, of_dx{dx_twice.data(), s.channels};
    const auto ws = dense_weights(s);
    conv_forward<float>(s, x.data(), w.data(), ws, y.data(), false, {of_filters.data()}, pool);
    conv_forward<float>(s, x.data(), w.data(), ws, y_twice.data(), false, {of_filters.data(), {doubling::run, &of_y}},
                        pool);
    conv_backward_data<float>(s, dy.data(), w.data(), ws, dx.data(), false, {of_channels.data()}, pool);
    conv_backward_data<float>(s, dy.data(), w.data(), ws, dx_twice.data(), false,
                              {of_channels.data(), {doubling::run, &of_dx}}, pool);
    index_t wrong = 0;
    for (std::size_t i = 0; i < y.size(); ++i) wrong += y_twice[i] != 2 * y[i];
    for (std::size_t i = 0; i < dx.size(); ++i) wrong += dx_twice[i] != 2 * dx[i];
    CHECK(wrong == 0);
  }
}

TEST_CASE("A transposed convolution is the gradient of x with a bias", "[convolution]") {
  thread_pool pool(2);
  const conv_shape s = square(2, 5, 7, 10, 3, 2, 1);  // from 7 channels of 5 x 5 to 5 of 10 x 10
  const auto dy = values<double>(y_size(s), 1), w = values<double>(w_size(s), 2), bias = values<double>(s.channels, 3);
  std::vector<double> got(static_cast<std::size_t>(x_size(s)));
  conv_backward_data<double>(s, dy.data(), w.data(), dense_weights(s), got.data(), false, {bias.data()}, pool);
  sums expected(got.size(), 0);
  for_products(s, dense_weights(s), [&](index_t i, index_t j, index_t k) {
    expected.add(i, dy[static_cast<std::size_t>(k)] * w[static_cast<std::size_t>(j)]);
  });
  for (index_t i = 0; i < x_size(s); ++i) expected.add(i, bias[static_cast<std::size_t>(i % s.channels)]);
  CHECK(wrong_elements(got, expected) == 0);
}

TEST_CASE("convolutions let NaN through where a patch holds it, and nowhere else", "[convolution]") {
  thread_pool pool(2);
  for (const index_t groups : {index_t{1}, index_t{16}}) {
    const conv_shape s = square(1, 16, 16, 8, 3, 1, 1, 1, groups);
    auto x = values<float>(x_size(s), 1);
    const auto w = values<float>(w_size(s), 2);
    x[static_cast<std::size_t>((3 * 8 + 4) * 16 + 5)] = std::numeric_limits<float>::quiet_NaN();
    std::vector<float> y(static_cast<std::size_t>(y_size(s)));
    conv_forward<float>(s, x.data(), w.data(), dense_weights(s), y.data(), false, {}, pool);
    index_t wrong = 0;
    for (index_t h = 0; h < 8; ++h)
      for (index_t v = 0; v < 8; ++v)
        for (index_t f = 0; f < 16; ++f) {
          const bool met = std::abs(h - 3) <= 1 && std::abs(v - 4) <= 1 && (groups == 1 || f == 5);
          wrong += std::isnan(y[static_cast<std::size_t>((h * 8 + v) * 16 + f)]) != met;
        }
    CHECK(wrong == 0);
  }
}
