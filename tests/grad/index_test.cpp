// tests/grad/index_test.cpp: gather, index_select, concat and stack: values, gradients, errors.
#include "differences.hpp"

using namespace sinter;
using differences::check;
using differences::random;

TEST_CASE("gather reads along any axis, from views and with indices of any type", "[index]") {
  std::mt19937 gen(1);
  const auto x = random(gen, {4, 5, 3});
  const auto index = eval(cast<std::int64_t>(random(gen, {4, 2, 3}, 0, 4.99)));
  const tensor y = gather(x, 1, index), narrow = gather(x, -2, cast<std::uint8_t>(index));
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 2; ++j)
      for (index_t k = 0; k < 3; ++k) {
        CHECK(y(i, j, k) == x(i, index(i, j, k), k));
        CHECK(narrow(i, j, k) == y(i, j, k));
      }
  const tensor turned = gather(x.permute({2, 0, 1}), 2, index.permute({2, 0, 1}));
  CHECK_FALSE(eval(any(turned != y.permute({2, 0, 1}))).item());
  CHECK(tensor(gather(x, 0, zeros<int>({0, 5, 3}))).numel() == 0);
}

TEST_CASE("gather and index_select add the gradients of what is read twice", "[index]") {
  std::mt19937 gen(2);
  const auto x = random(gen, {6, 7});
  const auto index = eval(cast<std::int64_t>(random(gen, {6, 9}, 0, 6.99)));
  check([&](const auto& v) { return gather(v, 1, index) * 2; }, 20, x);
  check([&](const auto& v) { return eval(gather(v.transpose(), 0, index.transpose())); }, 20, x);
  const tensor<int, 1> rows{5, 0, 5, 5, 2};
  check([&](const auto& v) { return eval(index_select(v, 0, rows)); }, 20, x);
  check([&](const auto& v) { return index_select(exp(v), 1, rows) + 1; }, 20, x);
  const variable v = ones<double>({3, 2});
  const variable y = index_select(v, 0, tensor<int, 1>{1, 1, 1});
  y.backward(ones<double>({3, 2}));
  CHECK(v.grad()(1, 0) == 3);
  CHECK(v.grad()(0, 0) == 0);
}

TEST_CASE("an element that is read very often gets the whole of its gradient", "[index]") {
  const index_t n = (index_t{1} << 24) + 2;
  const variable x = tensor<float, 1>{1, 2};
  const variable y = index_select(x, 0, ones<std::int64_t>({n}));
  y.backward(ones<float>({n}));
  CHECK(x.grad()(0) == 0);
  CHECK(x.grad()(1) == 16777218);
  const index_t fewer = 1100000;
  for (const int axis : {0, 1}) {
    const variable row = axis == 0 ? ones<float>({1, 2}) : ones<float>({2, 1});
    const auto many = index_select(row, axis, zeros<int>({fewer}));
    many.backward(full_like(many, 0.1f));
    CHECK(row.grad().flatten()(1) == Approx(fewer * 0.1).epsilon(1e-6));
    const variable narrow = axis == 0 ? ones<half>({1, 2}) : ones<half>({2, 1});
    const auto picked = index_select(narrow, axis, zeros<int>({fewer}));
    picked.backward(full_like(picked, 0x1p-10f));
    CHECK(static_cast<float>(narrow.grad().flatten()(1)) == Approx(fewer * 0x1p-10).epsilon(1e-3));
  }
}

TEST_CASE("results of gather do not depend on the number of threads", "[index]") {
  std::mt19937 gen(3);
  const auto x = random(gen, {300, 401});
  const auto index = eval(cast<std::int64_t>(random(gen, {300, 500}, 0, 400.99)));
  tensor<double, 2> gathered, gradient;
  for (const int threads : {1, 2, 3}) {
    set_num_threads(threads);
    const variable v = x.clone();
    const variable y = gather(v, 1, index);
    y.backward(eval(y.value() * 0.1));
    if (threads == 1) {
      gathered = y.value();
      gradient = v.grad().clone();
    }
    CHECK_FALSE(eval(any(y.value() != gathered)).item());
    CHECK_FALSE(eval(any(v.grad() != gradient)).item());
  }
  set_num_threads(2);
}

TEST_CASE("an index that was written to before backward is an error that names the op", "[index]") {
  const variable x(ones<float>({3, 4}));
  tensor<std::int64_t, 1> index{0, 2};
  const variable selected = index_select(x, 0, index);
  index.in_place() = 1;
  CHECK_THROWS_WITH(selected.backward(ones<float>({2, 4})), Catch::Contains("backward of 'index_select'"));
  const auto [largest, places] = topk(x, 2, 1);
  places.in_place() = 1;
  CHECK_THROWS_WITH(largest.backward(ones<float>({3, 2})), Catch::Contains("backward of 'topk'"));
}

TEST_CASE("gather and index_select of any rank and size, and what their gradients add up", "[index]") {
  std::mt19937 gen(5);
  for (const extents<3> shape :
       {extents<3>{{1, 1, 1}}, {{3, 40, 5}}, {{2, 7, 300}}, {{1, 900, 33}}, {{70, 3, 64}}, {{2, 5, 20000}}})
    for (int axis = 0; axis < 3; ++axis)
      for (const bool strided : {false, true})
        for (const int threads : {1, 3}) {
          set_num_threads(threads);
          CAPTURE(shape[0], shape[1], shape[2], axis, strided, threads);
          const auto dense = random(gen, shape);
          const auto x = strided ? random(gen, extents<3>{{shape[0], shape[2], shape[1]}}).transpose(1, 2) : dense;
          const index_t n = shape[axis], taken = n / 2 + 3;
          const double most = static_cast<double>(n) - 0.01;
          const auto picks = eval(cast<std::int64_t>(random(gen, {taken}, 0, most)));
          extents<3> index_shape = shape;
          index_shape[axis] = taken;
          const auto index = eval(cast<std::int64_t>(random(gen, index_shape, 0, most)));
          const variable v = x, w = x;
          const variable selected = index_select(v, axis, picks), gathered = gather(w, axis, index);
          const auto g = random(gen, index_shape);
          selected.backward(g);
          gathered.backward(g);
          auto of_selected = zeros<double>(shape), of_gathered = zeros<double>(shape);
          bool good = true;
          for (index_t i = 0; i < index_shape[0]; ++i)
            for (index_t j = 0; j < index_shape[1]; ++j)
              for (index_t k = 0; k < index_shape[2]; ++k) {
                index_t at[] = {i, j, k};
                const index_t along = at[axis];
                at[axis] = picks(along);
                good = good && selected.value()(i, j, k) == x(at[0], at[1], at[2]);
                of_selected(at[0], at[1], at[2]) += g(i, j, k);
                at[axis] = index(i, j, k);
                good = good && gathered.value()(i, j, k) == x(at[0], at[1], at[2]);
                of_gathered(at[0], at[1], at[2]) += g(i, j, k);
              }
          CHECK(good);
          CHECK_FALSE(eval(any(v.grad() != of_selected)).item());
          CHECK_FALSE(eval(any(w.grad() != of_gathered)).item());
        }
  set_num_threads(2);
}

TEST_CASE("indices outside the axis and shapes that do not fit are named", "[index]") {
  const auto x = zeros<float>({2, 3});
  CHECK_THROWS_WITH(gather(x, 1, tensor<int, 2>{{0, 3}}), Catch::Contains("index 3") && Catch::Contains("[0, 3)"));
  CHECK_THROWS_AS(gather(x, 1, tensor<int, 2>{{-1}}), index_error);
  CHECK_THROWS_AS(gather(x, 2, tensor<int, 2>{{0}}), index_error);
  CHECK_THROWS_AS(gather(x, 1, zeros<int>({3, 1})), shape_error);
  CHECK_THROWS_AS(index_select(x, 0, tensor<int, 1>{2}), index_error);
  CHECK(tensor(index_select(x, 0, zeros<int>({0}))).shape() == extents<2>{{0, 3}});
}

TEST_CASE("concat and stack take operands, a vector or a list", "[index]") {
  const tensor<int, 2> a = {{1, 2}, {3, 4}}, b = {{5, 6}};
  const tensor rows = concat(0, a, b), listed = concat({a, b}), counted = concat(0, std::vector{a, b});
  CHECK(rows.shape() == extents<2>{{3, 2}});
  CHECK(rows(2, 1) == 6);
  CHECK_FALSE(eval(any(listed != rows)).item());
  CHECK_FALSE(eval(any(counted != rows)).item());
  const tensor beside = concat({a, a}, -1);
  CHECK(beside.shape() == extents<2>{{2, 4}});
  CHECK(beside(1, 2) == 3);
  const tensor piled = stack({a, a}), last = stack(2, a, a * 10), few = stack(0, std::vector{b});
  CHECK(piled.shape() == extents<3>{{2, 2, 2}});
  CHECK(last(1, 0, 1) == 30);
  CHECK(few.shape() == extents<3>{{1, 1, 2}});
  CHECK_THROWS_AS(concat(0, a, tensor<int, 2>{{1, 2, 3}}), shape_error);
  CHECK_THROWS_AS(stack({a, b}), shape_error);
  CHECK_THROWS_AS(concat(2, a, b), index_error);
  CHECK_THROWS_AS(stack(0, std::vector<tensor<int, 2>>{}), shape_error);
}

TEST_CASE("concat and stack give each operand its part of the gradient", "[index]") {
  std::mt19937 gen(4);
  const auto x = random(gen, {3, 4}), y = random(gen, {2, 4});
  check([](const auto& a, const auto& b) { return concat(0, a, b * 2, a) + 1; }, 12, x, y);
  check([](const auto& a) { return stack(1, a, exp(a)) * 3; }, 12, x);
  check([](const auto& a) { return eval(stack({a, a}, -1)); }, 12, x);
}
