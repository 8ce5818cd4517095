// tests/core/tensor_test.cpp: handles, shared storage, rebinding against writing through, element access.
#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <limits>

#include <cstring>
#include <vector>

using namespace sinter;

static_assert(std::is_nothrow_move_constructible_v<tensor<float, 2>>);
static_assert(std::is_nothrow_move_assignable_v<tensor<float, 2>>);
static_assert(!std::is_constructible_v<tensor<float, 2>, tensor<double, 2>>);
static_assert(!std::is_constructible_v<tensor<float, 2>, tensor<float, 1>>);
static_assert(!std::is_constructible_v<tensor<float, 2>, tensor<float, 2, numa<0>>>);
static_assert(!std::is_assignable_v<tensor<float, 2>&, tensor<float, 2, numa<0>>>);
static_assert(!std::is_constructible_v<tensor<float, 1>, variable<float, 1>>);
static_assert(std::is_same_v<decltype(tensor(std::declval<tensor<float, 2>>() + 1)), tensor<float, 2>>);

TEST_CASE("copies and views of a tensor share its elements", "[tensor]") {
  tensor<float, 2> a{{1, 2, 3}, {4, 5, 6}};
  const tensor<float, 2> b = a;
  const auto row = a[1];
  a(1, 2) = 60;
  CHECK(b(1, 2) == 60);
  CHECK(row(2) == 60);
  row(0) = 40;
  CHECK(a(1, 0) == 40);
  const auto copy = a.clone();
  a(0, 0) = -1;
  CHECK(copy(0, 0) == 1);
}

TEST_CASE("assigning an expression to a tensor leaves other handles alone", "[tensor]") {
  tensor<float, 1> a{1, 2, 3};
  const tensor<float, 1> other = a;
  const auto view = a.slice(0, 0, 2);
  a = a * 10;
  CHECK(a(1) == 20);
  CHECK(other(1) == 2);
  CHECK(view(1) == 2);
  a = a + ones<float>({3});
  CHECK(a.shape() == extents<1>{{3}});
  a = sum(ones<float>({4, 5}), 0);
  CHECK(a.shape() == extents<1>{{5}});
}

TEST_CASE("updates in place and assignments through views write into the shared storage", "[tensor]") {
  tensor<float, 2> a = arange<float>(12).reshape({3, 4});
  const tensor<float, 2> other = a;
  a += 1;
  CHECK(other(2, 3) == 12);
  a.slice(0, 1, 2) = a.slice(0, 0, 1) * 2;
  CHECK(other(1, 3) == 8);
  a.in_place() = a * 0;
  CHECK(other(1, 3) == 0);
  a.slice(1, 1, 3) = 7;
  CHECK(other(0, 0) == 0);
  CHECK(other(2, 2) == 7);
  a[0] = arange<float>(4);
  CHECK(other(0, 3) == 3);
  a.transpose() = arange<float>(12).reshape({4, 3});
  CHECK(other(0, 1) == 3);
  a.flip(0) = other.clone();
  CHECK(a(0, 0) == 2);
  a.slice(0, 0, 2) = other.slice(0, 2, 3);
  CHECK(other(1, 1) == other(2, 1));
  a.select(1, 0) *= 2;
  a.in_place() -= ones<float>({4});
  a.in_place() /= 2;
  CHECK(other(0, 1) == (other(2, 1)));
}

TEST_CASE("assignment through a view broadcasts and rejects what does not fit", "[tensor]") {
  const auto a = zeros<float>({3, 4});
  a.in_place() = arange<float>(4);
  CHECK(a(2, 3) == 3);
  a.in_place() = full<float>({3, 1}, 5.f);
  CHECK(a(1, 2) == 5);
  CHECK_THROWS_AS(a.in_place() = zeros<float>({3}), shape_error);
  CHECK_THROWS_AS(a.slice(0, 0, 1) = zeros<float>({3, 4}), shape_error);
  CHECK_THROWS_AS(a.slice(0, 0, 1) = zeros<float>({3, 4}) + 1, shape_error);
  CHECK_THROWS_WITH(a.in_place() += zeros<float>({2, 4}), Catch::Contains("(3, 4)") && Catch::Contains("(2, 4)"));
  CHECK(a(1, 2) == 5);
}

TEST_CASE("a number that does not fit the elements is refused by views as by operators", "[tensor]") {
  const tensor<std::int8_t, 1> q = {1, 2};
  CHECK_THROWS_WITH(q.in_place() = 300, Catch::Contains("300 does not fit elements of type int8"));
  CHECK_THROWS_AS(q.slice(0, 0, 1) = -129, value_error);
  CHECK_THROWS_AS(q.in_place() += 300, value_error);
  CHECK_THROWS_AS(pow(q, 300), value_error);
  const tensor<std::uint8_t, 1> u = {1, 2};
  CHECK_THROWS_AS(u[0] = -1, value_error);
  CHECK_THROWS_AS(u[0] = 256, value_error);
  const tensor<bool, 1> m = {true, false};
  CHECK_THROWS_AS(m[0] = 2, value_error);
  const tensor<float, 1> x = {1, 2};
  CHECK_THROWS_AS(x.in_place() = 1e39, value_error);
  CHECK_THROWS_AS(x.in_place() *= 1e39, value_error);
  CHECK_THROWS_AS(clamp(x, -1e39, 1), value_error);
  CHECK_THROWS_AS(where(x > 0, x, 1e39), value_error);
  CHECK_THROWS_AS(hardtanh(x, -1, 1e39), value_error);
  const tensor<half, 1> h = {half(1), half(2)};
  CHECK_THROWS_AS(h.in_place() = 1e6, value_error);
  CHECK(q(0) == 1);
  CHECK(u(0) == 1);
  CHECK(x(1) == 2);
  q[0] = -128;
  m[0] = 0;
  x[1] = std::numeric_limits<double>::infinity();
  CHECK(q(0) == -128);
  CHECK(!m(0));
  CHECK(std::isinf(x(1)));
}

TEST_CASE("a broadcast view is for reading", "[tensor]") {
  const auto row = ones<float>({1, 4});
  const auto wide = row.broadcast_to({3, 4});
  CHECK_THROWS_AS(wide.in_place() = zeros<float>({3, 4}), shape_error);
  CHECK_THROWS_AS(wide.in_place() += 1, shape_error);
  CHECK(row(0, 0) == 1);
  const auto one = row.broadcast_to({1, 4});
  one.in_place() += 1;
  CHECK(row(0, 0) == 2);
}

TEST_CASE("tensors without elements can be written, read and reduced", "[tensor]") {
  auto a = zeros<float>({3, 0});
  a += 1;
  a.in_place() = a * 2;
  a.transpose() = zeros<float>({0, 3});
  a.slice(0, 0, 1) = 5;
  CHECK(a.numel() == 0);
  CHECK(a.begin() == a.end());
  CHECK(tensor(a + a).shape() == extents<2>{{3, 0}});
}

TEST_CASE("element access is checked on every axis and counts negative indices from the end", "[tensor]") {
  const tensor<int, 2> a{{1, 2, 3}, {4, 5, 6}};
  CHECK(a(-1, -1) == 6);
  CHECK(a(-2, 0) == 1);
  CHECK(a.transpose()(2, 0) == 3);
  CHECK(a.flip(1)(0, 0) == 3);
  CHECK_THROWS_AS(a(2, 0), index_error);
  CHECK_THROWS_AS(a(0, 3), index_error);
  CHECK_THROWS_AS(a(-3, 0), index_error);
  CHECK_THROWS_WITH(a(0, 7), Catch::Contains("7") && Catch::Contains("axis 1") && Catch::Contains("(2, 3)"));
  CHECK_THROWS_AS(zeros<int>({0})(0), index_error);
  CHECK(full<int>(3)() == 3);
}

TEST_CASE("a default-constructed tensor is an error wherever a value is needed", "[tensor]") {
  tensor<float, 1> none;
  tensor<float, 0> scalar;
  CHECK_FALSE(none.defined());
  CHECK(none.numel() == 0);
  CHECK(scalar.numel() == 0);
  CHECK_THROWS_AS(none + 1, shape_error);
  CHECK_THROWS_AS(ones<float>({1}) * none, shape_error);
  CHECK_THROWS_AS(none += 1, shape_error);
  CHECK_THROWS_AS(ones<float>({1}) += none, shape_error);
  CHECK_THROWS_AS(none.in_place() = ones<float>({1}), shape_error);
  CHECK_THROWS_AS(none(0), shape_error);
  CHECK_THROWS_AS(scalar(), shape_error);
  CHECK_THROWS_AS(scalar.item(), shape_error);
  CHECK_THROWS_AS(sum(none), shape_error);
  CHECK_THROWS_AS(none.clone(), shape_error);
  CHECK_THROWS_AS(none.to<numa<0>>(), shape_error);
  CHECK_THROWS_AS(softmax(none, 0), shape_error);
  CHECK_THROWS_AS(copy(none, none), shape_error);
  none = ones<float>({2});
  CHECK(none(1) == 1);
}

TEST_CASE("views, copies and relatives of a default-constructed tensor say what it is and what to do", "[tensor]") {
  const tensor<float, 2> none;
  const auto some = zeros<float>({2, 3});
  generator gen(1);
  const auto says = [](const std::string& op) {
    return op + ": the tensor is empty (default constructed); assign a value to it first";
  };
  CHECK_THROWS_WITH(none.slice(0, 0, 0), says("slice"));
  CHECK_THROWS_WITH(none.select(0, 0), says("select"));
  CHECK_THROWS_WITH(none[0], says("select"));
  CHECK_THROWS_WITH(none.reshape({1}), says("reshape"));
  CHECK_THROWS_WITH(none.flatten(), says("reshape"));
  CHECK_THROWS_WITH(none.transpose(), says("transpose"));
  CHECK_THROWS_WITH(none.permute({1, 0}), says("permute"));
  CHECK_THROWS_WITH(none.squeeze(0), says("squeeze"));
  CHECK_THROWS_WITH(none.unsqueeze(0), says("unsqueeze"));
  CHECK_THROWS_WITH(none.flip(0), says("flip"));
  CHECK_THROWS_WITH(none.broadcast_to({2, 2}), says("broadcast_to"));
  CHECK_THROWS_WITH(copy(none, some), says("copy, source"));
  CHECK_THROWS_WITH(copy(some, none), says("copy, destination"));
  CHECK_THROWS_WITH(zeros_like(none), says("zeros_like"));
  CHECK_THROWS_WITH(full_like(none, 1.f), says("full_like"));
  CHECK_THROWS_WITH(randn_like(gen, none), says("randn_like"));
  const variable<float, 2> empty_variable;
  const variable y = 2.f * variable(some);
  CHECK_THROWS_WITH(empty_variable.backward(), says("backward"));
  CHECK_THROWS_WITH(empty_variable.flip(0), says("flip"));
  CHECK_THROWS_WITH(y.backward(none), says("backward, seed"));
}

TEST_CASE("item reads the only element of any rank and refuses more or fewer", "[tensor]") {
  CHECK(full<double>(2.5).item() == 2.5);
  CHECK(full<int>({1, 1, 1}, 9).item() == 9);
  CHECK_THROWS_AS(zeros<int>({2}).item(), shape_error);
  CHECK_THROWS_AS(zeros<int>({0}).item(), shape_error);
  CHECK(arange<int>(10).slice(0, 7, 8).item() == 7);
}

TEST_CASE("span and iterators cover contiguous tensors only", "[tensor]") {
  const auto x = arange<int>(6).reshape({2, 3});
  int total = 0;
  for (int v : x) total += v;
  CHECK(total == 15);
  CHECK(x.span().size() == 6);
  CHECK_THROWS_AS(x.transpose().span(), shape_error);
  CHECK_THROWS_AS(x.slice(1, 0, 2).begin(), shape_error);
  CHECK(x.slice(0, 1, 2).span()[0] == 3);
  CHECK(x.transpose().contiguous().span()[1] == 3);
  CHECK(x.contiguous().data() == x.data());
}

TEST_CASE("lists give tensors of rank 1 to 4, and rows must agree", "[tensor]") {
  const tensor<int, 2> a{{1, 2}, {3, 4}, {5, 6}};
  CHECK(a.shape() == extents<2>{{3, 2}});
  CHECK(a(2, 1) == 6);
  CHECK(tensor<bool, 1>{true, false}.numel() == 2);
  CHECK_THROWS_AS((tensor<int, 2>{{1, 2}, {3}}), shape_error);
  const tensor<int, 3> b{{{1, 2}, {3, 4}, {5, 6}}, {{7, 8}, {9, 10}, {11, 12}}};
  CHECK(b.shape() == extents<3>{{2, 3, 2}});
  CHECK(b(1, 0, 1) == 8);
  CHECK_THROWS_AS((tensor<int, 3>{{{1}, {2}}, {{3}}}), shape_error);
  CHECK_THROWS_WITH((tensor<int, 3>{{{1}}, {{2, 3}}}), Catch::Contains("differ in length: 1 and 2"));
  CHECK(tensor<int, 4>{{{{1}, {2}}}}.shape() == extents<4>{{1, 1, 2, 1}});
}

TEST_CASE("to takes element type and device of another tensor", "[tensor]") {
  const tensor<float, 1> x{1.5f, -2};
  const tensor<double, 2, numa<0>> there = zeros<double, numa<0>>({1, 1});
  const tensor y = x.to(there);
  STATIC_REQUIRE(std::is_same_v<decltype(y), const tensor<double, 1, numa<0>>>);
  CHECK(y(0) == 1.5);
  const tensor z = (x + x).to(there);
  CHECK(z(1) == -4);
  const variable w = x;
  sum(w.to(zeros<double>({1}))).backward();
  CHECK(w.grad()(0) == 1);
}

TEST_CASE("an assignment used as a value has run", "[tensor]") {
  tensor<float, 1> a{1, 2};
  const auto twice = [](const tensor<float, 1>& t) { return t(0) * 2; };
  CHECK(twice(a = a + 1) == 4);
  CHECK(a(0) == 2);
  auto v = a.slice(0, 0, 1);
  CHECK(twice(v.in_place() = v * 3) == 12);
  CHECK(a(0) == 6);
}

TEST_CASE("an assignment whose statement throws does not run", "[tensor]") {
  tensor<float, 1> a{1, 2};
  const auto fail = [](const auto&) -> int { throw value_error("on purpose"); };
  CHECK_THROWS_AS(fail(a += 1), value_error);
  CHECK(a(0) == 1);
  CHECK_THROWS_AS(fail(a = a * 5), value_error);
  CHECK(a(0) == 1);
  try {
    throw value_error("outer");
  } catch (const value_error&) {
    a += 1;  // while an exception is being handled statements run as always
  }
  CHECK(a(0) == 2);
}
