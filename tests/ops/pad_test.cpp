// tests/ops/pad_test.cpp: pad: integers, memory order, empty tensors and errors; the kernel table has values and
// gradients.
#include <string>

#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

template <class F>
std::string text_of(const F& f) {
  try {
    f();
  } catch (const error& e) {
    return e.what();
  }
  return "nothing thrown";
}
template <class E>
std::vector<element_of<E>> list(const E& e) {
  const tensor dense = eval(e).contiguous();
  return std::vector<element_of<E>>(dense.begin(), dense.end());
}

}  // namespace

TEST_CASE("pad takes the last axis first, and any element type in all modes") {
  const tensor x = tensor<int, 2>{{1, 2, 3}, {4, 5, 6}};
  CHECK(eval(pad(x, {1, 0, 0, 1}, pad_mode::constant, 7)).shape() == extents<2>{{3, 4}});
  CHECK(list(pad(x, {1, 0, 0, 1}, pad_mode::constant, 7)) == std::vector<int>{7, 1, 2, 3, 7, 4, 5, 6, 7, 7, 7, 7});
  CHECK(list(pad(x, {2, 1}, pad_mode::reflect)) == std::vector<int>{3, 2, 1, 2, 3, 2, 6, 5, 4, 5, 6, 5});
  CHECK(list(pad(x, {2, 1}, pad_mode::replicate)) == std::vector<int>{1, 1, 1, 2, 3, 3, 4, 4, 4, 5, 6, 6});
  CHECK(list(pad(x, {2, 1}, pad_mode::circular)) == std::vector<int>{2, 3, 1, 2, 3, 1, 5, 6, 4, 5, 6, 4});
  CHECK(list(pad(tensor<bool, 1>{true, false}, {1, 1}, pad_mode::constant, true)) ==
        std::vector<bool>{true, true, false, true});
  CHECK(list(pad(tensor<std::uint8_t, 1>{9}, {0, 2})) == std::vector<std::uint8_t>{9, 0, 0});
  const std::int64_t big = (std::int64_t{1} << 60) + 1;
  CHECK(list(pad(tensor<std::int64_t, 1>{1}, {1, 0}, {.value = big})) == std::vector<std::int64_t>{big, 1});
  CHECK_THROWS_AS(eval(pad(tensor<int, 1>{1}, {1, 0}, {.value = 0.5})), value_error);
}

TEST_CASE("negative numbers cut off, in one direction or in both") {
  const tensor x = arange<float>(12).reshape({3, 4});
  CHECK(list(pad(x, {-1, -2, -1, 0})) == std::vector<float>{5, 9});
  CHECK(list(pad(x, {-3, 1, -2, 0}, pad_mode::constant, 5)) == std::vector<float>{11, 5});
  CHECK(list(pad(x.slice(0, 0, 1), {-1, 2}, pad_mode::reflect)) == std::vector<float>{1, 2, 3, 2, 1});
  CHECK(list(pad(x.slice(0, 0, 1), {-1, 2}, pad_mode::replicate)) == std::vector<float>{1, 2, 3, 3, 3});
  // A circle is closed after the cut.
  CHECK(list(pad(x.slice(0, 0, 1), {2, -1}, pad_mode::circular)) == std::vector<float>{1, 2, 0, 1, 2});
  CHECK(eval(pad(x, {-2, -2})).numel() == 0);
  variable v = x;
  variable y = pad(v, {-1, 1, -1, -1});
  y.backward(ones<float>(y.shape()));
  CHECK(list(v.grad()) == std::vector<float>{0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 0});
}

TEST_CASE("pad without numbers copies, and empty tensors fill with the value") {
  const tensor x = arange<float>(6).reshape({2, 3});
  const tensor y = pad(x, {});
  CHECK(y.data() != x.data());
  CHECK(list(y) == list(x));
  CHECK(list(pad(zeros<float>({0, 1}), {0, 0, 1, 1}, pad_mode::constant, 3)) == std::vector<float>{3, 3});
  CHECK(eval(pad(zeros<float>({0, 2, 3}), {1, 2}, pad_mode::reflect)).shape() == extents<3>{{0, 2, 6}});
}

TEST_CASE("pad and interpolate keep the order of axes in memory, for values and gradients") {
  const tensor x = arange<float>(240).reshape({2, 3, 5, 8});
  const auto check = [&](const auto& f) {
    const variable rows = x.clone(), last = x.to_memory_format(channels_last);
    const variable a = f(rows), b = f(last);
    CHECK(a.value().is_contiguous());
    CHECK(b.value().is_contiguous(channels_last));
    CHECK(list(a.value()) == list(b.value()));
    const tensor seed = arange<float>(a.numel()).reshape({2, 3, a.shape()[2], a.shape()[3]});
    a.backward(seed);
    b.backward(seed);
    CHECK(last.grad().is_contiguous(channels_last));
    CHECK(list(rows.grad()) == list(last.grad()));
  };
  for (const pad_mode mode : {pad_mode::constant, pad_mode::reflect, pad_mode::replicate, pad_mode::circular})
    check([mode](const auto& v) { return pad(v, {2, 1, 3, 0}, mode); });
  for (const interpolation mode : {interpolation::nearest, interpolation::nearest_exact})
    check([mode](const auto& v) { return interpolate(v, {.size = {10, 4}, .mode = mode}); });
  // Two orders of summation meet where sums are exact.
  check([](const auto& v) {
    return interpolate(v, {.size = {9, 15}, .mode = interpolation::bilinear, .align_corners = true});
  });
}

TEST_CASE("pad says what does not fit") {
  const tensor x = arange<float>(24).reshape({2, 3, 4});
  const auto pads = [&x](const pad_amounts& a, pad_mode mode) { return text_of([&] { eval(pad(x, a, mode)); }); };
  CHECK_THROWS_AS(pad(x, {1}), value_error);
  CHECK(text_of([&] { eval(pad(x, {1, 2, 3})); }).find("not 3 numbers") != std::string::npos);
  CHECK_THROWS_AS(pad(x, {1, 1, 1, 1, 1, 1, 1, 1}), shape_error);
  CHECK_THROWS_AS(pad(x, {-5, 0}), shape_error);
  CHECK_THROWS_AS(pad(x, {-3, -2}), shape_error);
  CHECK(pads({-5, 0}, pad_mode::constant).find("-5 and 0 cut more off axis 2 of shape (2, 3, 4)") != std::string::npos);
  CHECK(pads({0, 4}, pad_mode::reflect).find("less than the 4 elements of axis 2") != std::string::npos);
  CHECK(pads({5, 0}, pad_mode::circular).find("at most the 4 elements of axis 2") != std::string::npos);
  CHECK(pads({0, 3}, pad_mode::reflect) == "nothing thrown");
  CHECK(pads({4, 0}, pad_mode::circular) == "nothing thrown");
  CHECK(pads({1, 1, 1, 1, 1, 1}, pad_mode::reflect).find("not the last 3 of shape (2, 3, 4)") != std::string::npos);
  CHECK_THROWS_AS(pad(x, {}, pad_mode::replicate), shape_error);
  CHECK_THROWS_AS(pad(x.reshape({1, 2, 3, 4}), {1, 1}, pad_mode::replicate), shape_error);
  CHECK_THROWS_AS(pad(zeros<float>({2, 3, 0}), {1, 1}, pad_mode::replicate), shape_error);
  CHECK_THROWS_AS(pad(x, {-4, 2}, pad_mode::circular), shape_error);
  CHECK_THROWS_AS(pad(tensor<std::uint8_t, 1>{1}, {1, 1}, pad_mode::constant, 256), value_error);
  CHECK_THROWS_AS(pad(tensor<float, 3>(), {1, 1}), shape_error);
}
