// tests/core/print_test.cpp: tensors as text.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <limits>
#include <sstream>

using namespace sinter;

TEST_CASE("tensors print as nested brackets with type, shape and device", "[print]") {
  CHECK(to_string(tensor<float, 2>{{1, 2}, {3, 4}}) == "[[1, 2],\n [3, 4]] float (2, 2) cpu");
  CHECK(to_string(tensor<int, 1>{-1, 20}) == "[-1, 20] int32 (2,) cpu");
  CHECK(to_string(full<double>(2.5)) == "2.5 double () cpu");
  CHECK(to_string(full<bool, numa<1>>({1}, true)) == "[true] bool (1,) numa:1");
  CHECK(to_string(zeros<float>({0, 3})) == "[] float (0, 3) cpu");
  CHECK(to_string(tensor<float, 1>()) == "(empty tensor) float cpu");
  CHECK(to_string(arange<int>(8).reshape({2, 2, 2})) ==
        "[[[0, 1],\n  [2, 3]],\n\n [[4, 5],\n  [6, 7]]] int32 (2, 2, 2) cpu");
}

TEST_CASE("columns are aligned and views print what they show", "[print]") {
  CHECK(to_string(tensor<int, 2>{{1, 100}, {20, 3}}.transpose()) == "[[  1,  20],\n [100,   3]] int32 (2, 2) cpu");
  CHECK(to_string(arange<int>(6).flip(0).slice(0, 0, 6, 2)) == "[5, 3, 1] int32 (3,) cpu");
}

TEST_CASE("int8 prints as numbers, and NaN and infinities by name", "[print]") {
  CHECK(to_string(tensor<std::int8_t, 1>{65, -1}) == "[65, -1] int8 (2,) cpu");
  CHECK(to_string(tensor<float, 1>{INFINITY, -INFINITY}) == "[ inf, -inf] float (2,) cpu");
  CHECK_THAT(to_string(tensor<float, 1>{std::nanf("")}), Catch::Contains("nan"));
}

TEST_CASE("large tensors are summarised, and streams take them", "[print]") {
  std::ostringstream out;
  out << arange<int>(100000);
  CHECK_THAT(out.str(), Catch::Contains("...") && Catch::Contains("99999") && Catch::Contains("(100000,)"));
  CHECK(out.str().size() < 200);
  CHECK(to_string(zeros<float>({2000, 2000})).size() < 1000);
  CHECK_THAT(to_string(tensor<double, 1>{3.14159265}, {.precision = 3}),
             Catch::Contains("3.14]") || Catch::Contains("3.14"));
}

TEST_CASE("any edge can be asked for, and what holds nothing is summarised too", "[print]") {
  const auto x = arange<float>(4);
  CHECK_THAT(to_string(x, {.threshold = 2, .edge = 0}), Catch::StartsWith("[...] float"));
  CHECK_THAT(to_string(x, {.threshold = 2, .edge = 1}), Catch::StartsWith("[0, ..., 3] float"));
  CHECK_THAT(to_string(arange<float>(24).reshape({2, 3, 4}), {.threshold = 2, .edge = 0}),
             Catch::StartsWith("[...] float"));
  CHECK(to_string(zeros<float>({200000, 0})).size() < 100);
  CHECK(to_string(zeros<float>({index_t{1} << 40, 0, 3})).size() < 100);
  CHECK_THAT(to_string(zeros<float>({2, 0})), Catch::StartsWith("[[],"));
  CHECK_THROWS_AS(to_string(x, {.edge = -1}), value_error);
  CHECK_THROWS_AS(to_string(x, {.precision = -1}), value_error);
}

TEST_CASE("shapes and variables print to a stream", "[print]") {
  std::ostringstream text;
  const variable<float, 1> v = tensor<float, 1>{1, 2};
  text << v.shape() << ' ' << v;
  CHECK(text.str() == "(2,) [1, 2] float (2,) cpu");
}

TEST_CASE("to_string of an expression or a variable is that of its value", "[print]") {
  const tensor<float, 1> a{1, 2.5f};
  const variable v = a;
  CHECK(to_string(a + a) == to_string(eval(a + a)));
  CHECK(to_string(v) == to_string(a));
  CHECK(to_string(v * 2) == "[2, 5] float (2,) cpu");
  CHECK(to_string(a / 3, {.precision = 2}) == to_string(eval(a / 3), {.precision = 2}));
  CHECK(to_string(sum(a)) == to_string(eval(sum(a))));
}

TEST_CASE("expressions print the value they have", "[print]") {
  std::ostringstream text;
  const tensor<float, 1> a{1, 2};
  text << a * 2 << ' ' << sum(a);
  CHECK(text.str() == "[2, 4] float (2,) cpu 3 float () cpu");
}

TEST_CASE("not a number prints without a sign", "[print]") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK_THAT(to_string(tensor<float, 1>{nan, -nan, 1}), Catch::Contains("[nan, nan,   1]"));
}
