// tests/core/create_test.cpp: new tensors, wrapped memory, copies between host devices.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <array>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace sinter;

TEST_CASE("linspace and logspace have both ends, evenly spaced between", "[create]") {
  const tensor<float, 1> x = linspace(-1, 2, 7);
  for (index_t i = 0; i < 7; ++i) CHECK(x(i) == -1 + 0.5f * static_cast<float>(i));
  CHECK(linspace<double>(0, 0.3, 4)(3) == 0.3);
  CHECK(linspace<double>(0, 1, 50)(49) == 1);
  CHECK(linspace(5, 9, 1)(0) == 5);
  CHECK(linspace(5, 9, 0).numel() == 0);
  const auto whole = linspace<std::int64_t>(-3, 3, 5);
  CHECK((whole(0) == -3 && whole(1) == -1 && whole(2) == 0 && whole(3) == 1 && whole(4) == 3));
  const tensor<float, 1> powers = logspace(0, 3, 4, 2);
  for (index_t i = 0; i < 4; ++i) CHECK(powers(i) == static_cast<float>(1 << i));
  CHECK(linspace<double>(-1.7e308, 1.7e308, 3)(1) == 0);
  CHECK_THROWS_WITH(linspace(0, 1, -1), "linspace: -1 numbers; there must be 0 or more");
  CHECK_THROWS_AS(linspace(0, std::numeric_limits<double>::infinity(), 3), value_error);
  CHECK_THROWS_AS(linspace<std::int8_t>(0, 200, 3), value_error);
  CHECK_THROWS_AS(logspace<std::int8_t>(0, 200, 3), value_error);
}

TEST_CASE("eye may have another number of columns than of rows", "[create]") {
  const auto i = eye<float>(2, 3);
  CHECK((i.shape() == extents<2>{{2, 3}} && i(1, 1) == 1 && i(1, 2) == 0 && i(0, 1) == 0));
  CHECK(eye<float>(3, 0).numel() == 0);
}

TEST_CASE("zeros, ones, full and eye fill every element", "[create]") {
  for (float v : zeros<float>({3, 5, 7})) CHECK(v == 0);
  for (std::int64_t v : ones<std::int64_t>({40})) CHECK(v == 1);
  for (bool v : full<bool>({40}, true)) CHECK(v);
  CHECK(full<std::uint8_t>({70000}, 200)(69999) == 200);
  const auto i = eye<double>(5);
  for (int r = 0; r < 5; ++r)
    for (int c = 0; c < 5; ++c) CHECK(i(r, c) == (r == c ? 1 : 0));
  CHECK(eye<float>(0).numel() == 0);
  CHECK_THROWS_AS(eye<float>(-1), shape_error);
  CHECK(zeros<float>().item() == 0);
  CHECK(ones<float>({2, 0}).numel() == 0);
}

TEST_CASE("the *_like functions take shape, element type and device of any expression", "[create]") {
  const auto x = ones<double, numa<1>>({2, 3});
  const auto z = zeros_like(x.transpose() + 1);
  static_assert(std::is_same_v<decltype(z), const tensor<double, 2, numa<1>>>);
  CHECK(z.shape() == extents<2>{{3, 2}});
  CHECK(full_like(x, 4)(1, 2) == 4);
  CHECK(empty_like(x).shape() == x.shape());
  CHECK(ones_like(variable(ones<float>({4})))(3) == 1);
}

TEST_CASE("arange has ceil((end - begin) / step) elements", "[create]") {
  CHECK(arange<int>(5).numel() == 5);
  CHECK(arange<int>(2, 9, 3).numel() == 3);
  CHECK(arange<int>(2, 8, 3).numel() == 2);
  CHECK(arange<int>(5, 0, -2)(2) == 1);
  CHECK(arange<int>(5, 0).numel() == 0);
  CHECK(arange<int>(0, 5, -1).numel() == 0);
  CHECK(arange<int>(3, 3).numel() == 0);
  CHECK(arange<float>(0, 1, 0.25f).numel() == 4);
  CHECK(arange<double>(0.5, 2).numel() == 2);
  CHECK(arange<double>(-1).numel() == 0);
  CHECK(arange<std::uint8_t>(0, 255, 5)(50) == 250);
  CHECK(arange<std::int8_t>(-128, 127)(254) == 126);
  CHECK(arange<float>(0, 100000)(99999) == 99999);
}

TEST_CASE("the length of arange follows from its bounds as they are given, not as the elements round them",
          "[create]") {
  CHECK(arange<float>(0.1, 1.1).numel() == 1);
  CHECK(arange<float>(0.1, -7.9, -4.0).numel() == 2);
  CHECK(arange<float>(16777217, 16777215, -1).numel() == 2);
  CHECK(arange<half>(2049, 2051).numel() == 2);
  CHECK(arange<bfloat16>(0.1, 1.1).numel() == 1);
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  CHECK(arange<double>(odd, odd + 2).numel() == 2);
  CHECK(arange<double>(-1e308, 1e308, 1e308).numel() == 2);
  CHECK(arange<float>(0, 1, 0.1)(3) == 0.3f);
}

TEST_CASE("arange of wide integers is exact", "[create]") {
  const std::int64_t big = std::int64_t{1} << 53;
  const auto x = arange<std::int64_t>(big, big + 3);
  REQUIRE(x.numel() == 3);
  CHECK(x(1) == big + 1);
  const auto y = arange<int>(-2000000000, 2000000000, 1000000000);
  REQUIRE(y.numel() == 4);
  CHECK(y(3) == 1000000000);
  const auto low = std::numeric_limits<std::int64_t>::min(), high = std::numeric_limits<std::int64_t>::max();
  const auto wide = arange<std::int64_t>(low, high, high);
  REQUIRE(wide.numel() == 3);
  CHECK(wide(1) == -1);
  CHECK(wide(2) == high - 1);
  CHECK(arange<std::int64_t>(high, low, low).numel() == 2);
}

TEST_CASE("numbers that do not fit the elements are errors", "[create]") {
  CHECK(arange<std::uint8_t>(256).numel() == 256);
  CHECK(arange<std::uint8_t>(250, 256)(5) == 255);
  CHECK(arange<std::int8_t>(127, -129, -1)(255) == -128);
  CHECK(arange<std::int8_t>(300, 200).numel() == 0);
  CHECK_THROWS_WITH(arange<std::int8_t>(200), Catch::Contains("arange: 199 does not fit elements of type int8"));
  CHECK_THROWS_WITH(arange<std::uint8_t>(-1, 5), Catch::Contains("-1 does not fit"));
  CHECK_THROWS_WITH(full<std::uint8_t>({1}, 300), Catch::Contains("300 does not fit elements of type uint8"));
  CHECK_THROWS_AS(full<std::int8_t>(-129), value_error);
  CHECK_THROWS_AS(full<int>({2}, 3e9), value_error);
  CHECK_THROWS_AS(full<int>({2}, std::nan("")), value_error);
  CHECK_THROWS_WITH(full<int>({2}, 0.5), Catch::Contains("0.5 does not fit elements of type int32"));
  CHECK_THROWS_AS(full<bool>({2}, 0.5), value_error);
  CHECK_THROWS_AS(full<bool>({2}, 2), value_error);
  CHECK_THROWS_AS(full_like(zeros<std::int64_t>({3}), -2.5f), value_error);
  CHECK_THROWS_AS(full<float>({2}, 1e39), value_error);
  CHECK_THROWS_AS(full<half>({2}, 65520), value_error);
  CHECK(full<half>({2}, 65519)(0) == 65504.f);
  CHECK(full<float>(3.40282356e38)() == std::numeric_limits<float>::max());
  CHECK(std::isinf(full<float>(std::numeric_limits<double>::infinity())()));
  CHECK(std::isnan(static_cast<float>(full<half>(std::nan(""))())));
  CHECK(full<int>({2}, 3.0)(1) == 3);
  CHECK_THROWS_WITH(arange<int>(0, 2.5), Catch::Contains("arange: 2.5 does not fit elements of type int32"));
  CHECK_THROWS_AS(arange<float>(0, 1e39, 1e38), value_error);
  CHECK(full<std::int64_t>(-0x1p63)() == std::numeric_limits<std::int64_t>::min());
  CHECK_THROWS_AS(full<std::int64_t>(0x1p63), value_error);
  CHECK(full<int>(-2147483648.0)() == std::numeric_limits<int>::min());
  CHECK_THROWS_AS(full_like(zeros<std::uint8_t>({3}), 256), value_error);
  CHECK(full<std::uint8_t>({1}, 255)(0) == 255);
  CHECK(full<bool>({1}, 1)(0));
  const auto h = arange<half>(0, 100, 0.1f);  // in float, rounded at the end
  CHECK(h.numel() == 1000);
  CHECK(static_cast<float>(h(333)) == 33.3125f);
}

TEST_CASE("arange refuses steps of zero and what is not finite", "[create]") {
  const float inf = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(arange<int>(0, 5, 0), value_error);
  CHECK_THROWS_AS(arange<float>(0, 5, 0), value_error);
  CHECK_THROWS_AS(arange<float>(0, inf), value_error);
  CHECK_THROWS_AS(arange<float>(-inf, 0), value_error);
  CHECK_THROWS_AS(arange<float>(0, std::nanf("")), value_error);
  CHECK_THROWS_AS(arange<float>(0, 1, std::nanf("")), value_error);
  CHECK_THROWS_WITH(arange<double>(0, 1e300), Catch::Contains("1e+300 elements are more than can be addressed"));
  CHECK(arange<double>(0, -1e300).numel() == 0);
}

TEST_CASE("tensors are made of vectors, arrays and rows of one length", "[create]") {
  std::vector<std::vector<float>> rows{{1, 2, 3}, {4, 5, 6}};
  const tensor t(rows);
  CHECK(t.shape() == extents<2>{{2, 3}});
  CHECK(t(1, 0) == 4);
  CHECK(tensor(std::vector<std::vector<float>>{}).numel() == 0);
  CHECK(tensor(std::array<int, 2>{7, 8})(1) == 8);
  rows[1].pop_back();
  CHECK_THROWS_WITH((tensor<float, 2>(rows)), Catch::Contains("a row of 2 elements after rows of 3"));
}

TEST_CASE("from_data copies as many values as the shape holds", "[create]") {
  std::vector<float> v(6);
  std::iota(v.begin(), v.end(), 0.f);
  const auto x = from_data<float>(v, {2, 3});
  v[5] = -1;
  CHECK(x(1, 2) == 5);
  CHECK_THROWS_AS(from_data<float>(v, {7}), shape_error);
  CHECK_THROWS_AS(from_data<float>(v, {2, 2}), shape_error);
  CHECK_THROWS_WITH(from_data<float>(v, {7}), Catch::Contains("6") && Catch::Contains("(7,)"));
  CHECK_THROWS_AS(from_data<float>(v, {-2, -3}), shape_error);
  CHECK(from_data<float>({}, {0, 4}).numel() == 0);
  const auto y = from_data<float, numa<0>>(v, {3, 2});
  CHECK(y(2, 1) == -1);
}

TEST_CASE("from_data takes the element type of what it copies", "[create]") {
  const std::vector<double> v = {1, 2, 3, 4};
  const int list[] = {5, 6};
  const auto x = from_data(v, {2, 2});
  static_assert(std::is_same_v<decltype(x), const tensor<double, 2>>);
  CHECK(x(1, 0) == 3);
  const auto y = from_data<numa<0>>(std::span(list), extents<1>{{2}});
  static_assert(std::is_same_v<decltype(y), const tensor<int, 1, numa<0>>>);
  CHECK(y(1) == 6);
  CHECK(from_data(list, {1, 2})(0, 1) == 6);
  CHECK(from_data(std::array{1.f, 2.f}, {2})(1) == 2);
  CHECK_THROWS_AS(from_data(v, {3}), shape_error);
}

TEST_CASE("wrap shows the caller's memory", "[create]") {
  double v[6] = {0, 1, 2, 3, 4, 5};
  {
    const auto x = wrap(v, {2, 3});
    x.in_place() += 10;
    CHECK(x.transpose()(2, 1) == 15);
  }
  CHECK(v[5] == 15);
  v[0] = 7;
  CHECK(wrap<numa<1>>(v, {6})(0) == 7);
  double* null = nullptr;
  CHECK_THROWS_AS(wrap(null, {1}), device_error);
  CHECK_THROWS_AS(wrap(v, {-1}), shape_error);
  CHECK(wrap(null, {0}).numel() == 0);
  CHECK(tensor(wrap(null, {0}) + 1).numel() == 0);
}

TEST_CASE("wrapped memory need not be aligned", "[create]") {
  std::vector<float> v(1001, 1.f);
  auto x = wrap(v.data() + 1, {1000});
  x += arange<float>(1000);
  CHECK(v[0] == 1);
  CHECK(v[1000] == 1000);
}

TEST_CASE("two wraps of overlapping memory count as aliases", "[create]") {
  float v[8] = {0, 1, 2, 3, 4, 5, 6, 7};
  const auto a = wrap(v, {7}), b = wrap(v + 1, {7});
  b.in_place() = a + 0;
  for (int i = 1; i < 8; ++i) CHECK(v[i] == static_cast<float>(i - 1));
  a.in_place() = b * 1;
  for (int i = 0; i < 6; ++i) CHECK(v[i] == static_cast<float>(i));
}

TEST_CASE("to the same device gives the same handle, to another a copy", "[create]") {
  const auto x = arange<int>(6).reshape({2, 3});
  CHECK(x.to<cpu>().data() == x.data());
  const tensor<int, 2, numa<1>> y = x.transpose().to<numa<1>>();
  x(0, 1) = 100;
  CHECK(y.shape() == extents<2>{{3, 2}});
  CHECK(y(1, 0) == 1);
  CHECK(y.strides() == extents<2>{{1, 3}});
  CHECK(y.to<numa<0>>().to<cpu>()(2, 1) == 5);
  CHECK(zeros<float>({0, 2}).to<numa<0>>().shape() == extents<2>{{0, 2}});
  CHECK(full<float>(3).to<numa<2>>().item() == 3);
}

TEST_CASE("copy writes into existing storage, across devices and strides", "[create]") {
  const auto src = arange<float>(6).reshape({2, 3});
  const auto dst = zeros<float, numa<0>>({3, 2});
  copy(src, dst.transpose());
  CHECK(dst(2, 1) == 5);
  copy(dst, src.reshape({3, 2}));
  CHECK(src(0, 1) == 3);
  copy(src, src.flip(1));
  CHECK(src(0, 0) == 1);
  CHECK_THROWS_AS(copy(src, dst), shape_error);
  CHECK_THROWS_AS(copy(src, ones<float>({2, 1}).broadcast_to({2, 3})), shape_error);
}

TEST_CASE("a pending copy is handed over once and survives its source", "[create]") {
  auto x = arange<int>(1000);
  auto coming = x.to_async<numa<1>>();
  x = zeros<int>({1});
  auto moved = std::move(coming);
  const auto y = moved.get();
  CHECK(y(999) == 999);
  CHECK_THROWS_AS(moved.get(), value_error);
  CHECK_THROWS_AS(coming.get(), value_error);
  auto failing = tensor<int, 1>().to_async<numa<0>>();
  CHECK_THROWS_AS(failing.get(), shape_error);
  {
    auto dropped = y.to_async<cpu>();
  }
  auto replaced = y.to_async<cpu>();
  replaced = y.slice(0, 0, 3).to_async<cpu>();
  CHECK(replaced.get().numel() == 3);
}

TEST_CASE("with_device enters the type that the text names", "[create]") {
  const auto name = [](std::string_view choice) {
    return with_device<numa<1>, cpu>(choice, [](auto d) { return device_name<decltype(d)>(); });
  };
  CHECK(name("cpu") == "cpu");
  CHECK(name("numa:1") == "numa:1");
  CHECK(name("") == "numa:1");
  CHECK(name("auto") == "numa:1");
  CHECK_THROWS_AS(name("numa:0"), device_error);
  CHECK_THROWS_WITH(name("tpu"), Catch::Contains("'tpu'") && Catch::Contains("numa:1, cpu"));
  CHECK_THROWS_AS((with_device<cuda<0>>("cuda:0", [](auto) { return 0; })), device_error);
  CHECK((with_device<cuda<0>, cpu>("", [](auto d) { return is_cuda_v<decltype(d)>; })) == available<cuda<0>>());
}
