// tests/ops/pooling_test.cpp: pooling beside the table of kernel ops: indices, ties, NaN, shapes, errors, what is
// saved.
#include "../catch.hpp"

#include <cmath>
#include <limits>

#include <sinter/sinter.hpp>

#include "../kernels/pooling.hpp"

using namespace sinter;
using Catch::Contains;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

template <class E>
std::vector<double> values_of(const E& e) {
  const auto x = eval(e).contiguous();
  return {x.begin(), x.end()};
}
using list = std::vector<double>;

template <class T = float, int R>
tensor<T, R> numbers(const extents<R>& shape, std::uint64_t seed = 1) {
  generator gen(seed);
  return eval(cast<T>(randn<double>(gen, shape)));
}

/// Whether x has `values` at `indices`, which count in its planes.
template <class T, int R>
bool stand_there(const tensor<T, R>& x, const tensor<T, R>& values, const tensor<std::int64_t, R>& indices) {
  const auto dense = x.contiguous(), y = values.contiguous();
  const auto i = indices.contiguous();
  const index_t plane = x.numel() / (x.shape()[0] * x.shape()[1]), results = y.numel() / (x.shape()[0] * x.shape()[1]);
  for (index_t k = 0; k < y.numel(); ++k)
    if (dense.data()[k / results * plane + i.data()[k]] != y.data()[k]) return false;
  return true;
}

}  // namespace

TEST_CASE("max pooling tells where the elements stand in their planes") {
  const auto plane = numbers<double>(extents<4>{{2, 3, 7, 5}});
  const auto [a, i] = max_pool2d_with_indices(plane, 3, {.stride = 2, .padding = 1});
  CHECK(stand_there(plane, a, i));
  const auto [b, j] = max_pool2d_with_indices(plane, {2, 3}, {.stride = 1, .dilation = {3, 2}});
  CHECK(stand_there(plane, b, j));
  const auto [c, k] = adaptive_max_pool2d_with_indices(plane, {3, 4});
  CHECK(stand_there(plane, c, k));
  const auto line = numbers<half>(extents<3>{{2, 3, 9}});
  const auto [d, l] = max_pool1d_with_indices(line, 2, {.ceil_mode = true});
  CHECK(stand_there(line, d, l));
  CHECK(d.shape() == extents<3>{{2, 3, 5}});
  const auto [e, m] = adaptive_max_pool1d_with_indices(line, 4);
  CHECK(stand_there(line, e, m));
  const auto block = numbers(extents<5>{{2, 2, 4, 3, 5}});
  const auto [f, n] = max_pool3d_with_indices(block, {2, 1, 2});
  CHECK(stand_there(block, f, n));
  const auto [g, o] = adaptive_max_pool3d_with_indices(block, {2, 1, 3});
  CHECK(stand_there(block, g, o));
  const auto large = numbers(extents<4>{{1, 17, 20, 18}});  // windows of more than 255 taps
  const auto [h, p] = adaptive_max_pool2d_with_indices(large, 1);
  CHECK(stand_there(large, h, p));
  CHECK(values_of(h) == values_of(adaptive_max_pool2d(large, 1)));
}

TEST_CASE("max pooling with indices is differentiable, and records nothing under no_grad") {
  const variable x = numbers<double>(extents<4>{{1, 2, 4, 4}});
  auto [y, i] = max_pool2d_with_indices(x, 2);
  sum(y * y).backward();
  const auto by_function = variable(x.value().clone());
  const variable z = max_pool2d(by_function, 2);
  sum(z * z).backward();
  CHECK(values_of(x.grad()) == values_of(by_function.grad()));
  const no_grad guard;
  auto [u, k] = max_pool2d_with_indices(x, 2);
  CHECK(values_of(u.value()) == values_of(y.value()));
  CHECK(values_of(k) == values_of(i));
}

TEST_CASE("the first of equal elements is taken, and NaN where there is one") {
  const tensor<float, 3> x = {{{1, 3, 3, 2, -inf, -inf, not_a_number, 5, 4, not_a_number}}};
  const auto [y, i] = max_pool1d_with_indices(x, 2);
  CHECK(values_of(i) == list{1, 2, 4, 6, 9});
  CHECK(y(0, 0, 0) == 3);
  CHECK(y(0, 0, 2) == -inf);
  CHECK(std::isnan(y(0, 0, 3)));
  CHECK(std::isnan(y(0, 0, 4)));
  const tensor plain = max_pool1d(x, 2);
  CHECK(std::isnan(plain(0, 0, 3)));
  CHECK(std::isnan(plain(0, 0, 4)));
  const variable v = full<float>({1, 40, 2, 2}, 7);  // all vectors' widths
  variable z = max_pool2d(v, 2);
  z.backward(ones_like(z.value()));
  for (index_t c = 0; c < 40; ++c) CHECK(values_of(v.grad()[0][c]) == list{1, 0, 0, 0});
}

TEST_CASE("a window whose taps all miss x gives -inf, index -1 and no gradient") {
  const variable x = tensor<float, 3>{{{4, 6}}};
  auto [y, i] = max_pool1d_with_indices(x, 2, {.stride = 1, .padding = 1, .dilation = 3});
  CHECK(values_of(y.value()) == list{-inf});
  CHECK(values_of(i) == list{-1});
  sum(y).backward();
  CHECK(values_of(x.grad()) == list{0, 0});
}

TEST_CASE("ceil_mode adds a window that begins inside x or the padding in front, never one behind") {
  const auto x = numbers(extents<3>{{1, 1, 6}});
  const auto results = [&](index_t kernel, const max_pool_options<1>& o) {
    const index_t n = max_pool1d(x, kernel, o).shape()[2];
    CHECK(values_of(max_pool1d(x, kernel, o)) ==
          values_of(kernel_table::pooled<1>(
              eval(cast<double>(x)),
              {kernel_table::sliding_windows(6, kernel, o.stride.of(kernel)[0], o.padding[0], 1, o.ceil_mode)},
              kernel_table::largest_of_window)));
    return n;
  };
  CHECK(results(4, {}) == 1);
  CHECK(results(4, {.ceil_mode = true}) == 2);
  CHECK(results(2, {.stride = 4, .ceil_mode = true}) == 2);
  CHECK(results(1, {.stride = 5, .ceil_mode = true}) == 2);
  CHECK(results(2, {.stride = 7, .padding = 1, .ceil_mode = true}) == 1);  // the next would begin in the padding behind
  CHECK(results(7, {.stride = 3, .ceil_mode = true}) == 1);                // larger than x: a part of it
  CHECK_THROWS_AS(max_pool1d(x, 7), shape_error);
  const tensor<float, 4> y = {{{{1, 2, 3}, {4, 5, 6}, {7, 8, 9}}}};
  // PyTorch counts padding, but not what a last window has beyond it.
  CHECK(values_of(avg_pool2d(y, 2, {.ceil_mode = true})) == list{3, 4.5, 7.5, 9});
  CHECK(values_of(avg_pool2d(y, 2, {.padding = 1, .ceil_mode = true})) == list{0.25, 1.25, 2.75, 7});
}

TEST_CASE("lp_pool gives the norm of each window") {
  const auto check = [](const auto& y, const list& expected) {
    const list got = values_of(y);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]));
  };
  const tensor<float, 4> x = {{{{3, 4, 0}, {0, 0, 5}, {12, 0, 0}}}};
  check(lp_pool2d(x, 2, 2, {.stride = 1}), list{5, std::sqrt(41.0), 12, 5});
  check(lp_pool2d(x, 1, {1, 3}), list{7, 5, 12});
  check(lp_pool2d(x, 2, 2, {.padding = 1}), list{3, 4, 12, 5});
  check(lp_pool2d(x, 2, 2, {.dilation = 2}), list{std::sqrt(153.0)});
  // As in PyTorch a window of which only part fits has the mean of its part times its whole size.
  check(lp_pool1d(tensor<float, 3>{{{3, 4, 5}}}, 2, 2, {.ceil_mode = true}), list{5, std::sqrt(50.0)});
  check(lp_pool3d(ones<float>({1, 1, 2, 2, 2}), 3, 2), list{2});
  const variable v = tensor<double, 3>{{{3, 4}}};
  sum(lp_pool1d(v, 2, 2)).backward();
  CHECK((v.grad()(0, 0, 0) == Approx(0.6) && v.grad()(0, 0, 1) == Approx(0.8)));
  CHECK_THROWS_WITH(lp_pool2d(x, 0, 2), "lp_pool2d: norm_type is 0; it must be above 0");
}

TEST_CASE("average pooling divides by what it was told") {
  const tensor<float, 3> x = {{{3, 6, 9}}};
  // Taps 0 and 2, and of the last window in the padding behind x the first alone.
  CHECK(values_of(avg_pool1d(x, 2, {.stride = 1, .dilation = 2})) == list{6});
  CHECK(values_of(avg_pool1d(x, 2, {.stride = 1, .padding = 1, .dilation = 2})) == list{3, 6, 3});
  CHECK(values_of(avg_pool1d(x, 2, {.stride = 1, .padding = 1, .count_include_pad = false, .dilation = 2})) ==
        list{6, 6, 6});
  CHECK(values_of(avg_pool1d(x, 3, {.stride = 1, .padding = 1})) == list{3, 6, 5});
  CHECK(values_of(avg_pool1d(x, 3, {.stride = 1, .padding = 1, .count_include_pad = false})) == list{4.5, 6, 7.5});
  CHECK(values_of(avg_pool1d(x, 3, {.divisor_override = -2})) == list{-9});
}

TEST_CASE("adaptive pooling keeps extents, makes more results than elements, or none") {
  const tensor<float, 3> x = {{{1, 2, 4}}};
  CHECK(values_of(adaptive_avg_pool1d(x, keep_extent)) == list{1, 2, 4});
  CHECK(values_of(adaptive_avg_pool1d(x, 2)) == list{1.5, 3});
  CHECK(values_of(adaptive_max_pool1d(x, 5)) == list{1, 2, 2, 4, 4});
  const variable v = x;
  variable none = adaptive_avg_pool1d(v, 0);
  CHECK(none.shape() == extents<3>{{1, 1, 0}});
  none.backward(none.value());
  CHECK(values_of(v.grad()) == list{0, 0, 0});
  CHECK(max_pool2d(zeros<float>({0, 3, 4, 4}), 2).shape() == extents<4>{{0, 3, 2, 2}});
  CHECK(eval(adaptive_avg_pool2d(zeros<float>({2, 0, 4, 4}), 1)).numel() == 0);
}

TEST_CASE("results of pooling are channels-last, whatever x is") {
  const auto x = numbers(extents<4>{{2, 5, 6, 4}});
  const tensor y = max_pool2d(x, 2), z = max_pool2d(x.to_memory_format(channels_last), 2);
  CHECK(y.is_contiguous(channels_last));
  CHECK(values_of(y) == values_of(z));
  CHECK(max_pool2d_with_indices(x, 2).indices.is_contiguous(channels_last));
}

TEST_CASE("a mean over many elements has a small error") {
  const tensor x = full<float>({1, 1, 2000, 2000}, 0.1f);
  CHECK(eval(adaptive_avg_pool2d(x, 1)).item() == Approx(0.1).epsilon(3e-5));
}

TEST_CASE("max pooling saves a byte a result, four where a window has more than 255 taps, and only while it records") {
  const auto saved = [](index_t kernel) {
    const auto op = detail::max_pool_of<1>(kernel, {}, ops::save_places::while_recording);
    return op.new_places<cpu>(7, kernel);
  };
  CHECK(saved(255).bytes.numel() == 7);
  CHECK_FALSE(saved(255).words.defined());
  CHECK(saved(256).words.numel() == 7);
  CHECK_FALSE(saved(256).bytes.defined());
  const no_grad guard;
  CHECK_FALSE(saved(255).bytes.defined());
  CHECK_FALSE(saved(256).words.defined());
}

TEST_CASE("pooling refuses windows that PyTorch refuses, and says which") {
  const auto x = numbers(extents<4>{{1, 2, 5, 4}});
  CHECK_THROWS_MATCHES(max_pool2d(x, 0), value_error,
                       Catch::Message("max_pool2d: the kernel is 0; it must be 1 or more"));
  CHECK_THROWS_MATCHES(avg_pool2d(x, 2, {.stride = {1, 0}}), value_error,
                       Catch::Message("avg_pool2d: stride is 0; it must be 1 or more"));
  CHECK_THROWS_MATCHES(max_pool2d(x, 2, {.dilation = 0}), value_error,
                       Catch::Message("max_pool2d: dilation is 0; it must be 1 or more"));
  CHECK_THROWS_MATCHES(max_pool2d(x, 3, {.padding = 2}), value_error,
                       Catch::Message("max_pool2d: padding 2 for a kernel of 3; it must be from 0 to half of that"));
  CHECK_THROWS_MATCHES(avg_pool2d(x, 3, {.padding = {0, -1}}), value_error,
                       Catch::Message("avg_pool2d: padding -1 for a kernel of 3; it must be from 0 to half of that"));
  CHECK_THROWS_MATCHES(max_pool2d(x, 3, {.dilation = {1, 2}}), shape_error,
                       Catch::Message("max_pool2d: a window of 5 elements is larger than axis 3 of x of shape "
                                      "(1, 2, 5, 4) with padding 0"));
  CHECK_THROWS_MATCHES(avg_pool2d(x, 2, {.divisor_override = 0}), value_error,
                       Catch::Message("avg_pool2d: divisor_override is 0; leave it out, or divide by another number"));
  CHECK_THROWS_MATCHES(adaptive_avg_pool2d(x, {2, -3}), value_error,
                       Catch::Message("adaptive_avg_pool2d: a result of size -3; a size is 0 or more, or keep_extent"));
  CHECK_THROWS_MATCHES(adaptive_max_pool2d(zeros<float>({1, 2, 0, 4}), 1), shape_error,
                       Catch::Message("adaptive_max_pool2d: x of shape (1, 2, 0, 4) has no elements on axis 2"));
  CHECK_THROWS_MATCHES(max_pool1d(zeros<float>({1, 2, 0}), 2, {.padding = 1}), shape_error,
                       Catch::Message("max_pool1d: x of shape (1, 2, 0) has no elements on axis 2"));
  CHECK_THROWS_WITH(max_pool2d(x, {1, 2, 3}), Contains("takes one number or 2, not 3"));
}
