// tests/ops/slice_scatter_test.cpp: tensors with a part replaced, and windows along an axis.
#include "../grad/differences.hpp"
#include "../same_bits.hpp"

using namespace sinter;

namespace {

template <class E>
std::vector<element_of<E>> list(const E& e) {
  const tensor dense = eval(e).contiguous();
  return std::vector<element_of<E>>(dense.begin(), dense.end());
}

}  // namespace

TEST_CASE("slice_scatter, select_scatter and diagonal_scatter replace a part") {
  const tensor x = arange<float>(12).reshape({3, 4});
  CHECK(list(slice_scatter(x, tensor<float, 2>{{-1, -2, -3, -4}}, 0, -1, 3)) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, -1, -2, -3, -4});
  CHECK(list(slice_scatter(x, x.slice(1, 0, 2) * 10, 1, 1, 4, 2)) ==
        std::vector<float>{0, 0, 2, 10, 4, 40, 6, 50, 8, 80, 10, 90});
  CHECK(list(select_scatter(x, tensor<float, 1>{-1, -2, -3}, -1, 1)) ==
        std::vector<float>{0, -1, 2, 3, 4, -2, 6, 7, 8, -3, 10, 11});
  CHECK(list(diagonal_scatter(x, tensor<float, 1>{-1, -2, -3}, 1)) ==
        std::vector<float>{0, -1, 2, 3, 4, 5, -2, 7, 8, 9, 10, -3});
  CHECK(list(diagonal_scatter(x, tensor<float, 1>{-1}, -2)) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, -1, 9, 10, 11});
  const tensor cube = zeros<int>({2, 3, 2});
  CHECK(sum(diagonal_scatter(cube, ones<int>({3, 2}), 0, 0, 2)).item() == 6);
  CHECK(list(select_scatter(zeros<bool>({2}), full<bool>(true), 0, 1)) == std::vector<bool>{false, true});
  CHECK(list(slice_scatter(full<int>({1}, 5).broadcast_to({3}), zeros<int>({1}), 0, 1, 2)) ==
        std::vector<int>{5, 0, 5});
  CHECK(list(slice_scatter(x, zeros<float>({0, 4}), 0, 1, 1)) == list(x));
  CHECK(list(x) == list(arange<float>(12)));
  CHECK_THROWS_WITH(slice_scatter(x, x, 0, 0, 2), "slice_scatter: a source of shape (3, 4) for a part of shape (2, 4)");
  CHECK_THROWS_WITH(select_scatter(x, x[0], 0, 3), "select: index 3 is out of range for axis 0 of shape (3, 4)");
  CHECK_THROWS_WITH(diagonal_scatter(x, zeros<float>({1})),
                    "diagonal_scatter: a source of shape (1,) for a part of shape (3,)");
}

TEST_CASE("unfold along an axis shows windows") {
  const tensor x = arange<int>(10);
  const tensor windows = unfold(x, 0, 4, 3);
  CHECK(list(windows) == std::vector<int>{0, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 9});
  CHECK(windows.shape() == extents<2>{{3, 4}});
  CHECK(windows.data() == x.data());
  CHECK(list(x.unfold(-1, 10, 5)) == list(x));
  CHECK(x.unfold(0, 0, 4).shape() == extents<2>{{3, 0}});
  const tensor y = arange<int>(12).reshape({3, 4});
  CHECK(unfold(y, 0, 2, 1).shape() == extents<3>{{2, 4, 2}});
  CHECK(list(unfold(y + 1, 0, 2, 1)[1]) == std::vector<int>{5, 9, 6, 10, 7, 11, 8, 12});
  CHECK(list(eval(sum(unfold(y, 1, 3, 1), -1))) == std::vector<std::int64_t>{3, 6, 15, 18, 27, 30});
  CHECK(list(unfold(y, 1, 3, 1).reshape({-1})) ==
        std::vector<int>{0, 1, 2, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8, 9, 10, 9, 10, 11});
  // Windows that overlap are for reading; others, strided, turned and diagonal views are written through.
  const tensor<float, 1> v = zeros<float>({6});
  CHECK_THROWS_WITH(v.unfold(0, 2, 1).fill_(1), Catch::Contains("overlap") && Catch::Contains("clone()"));
  CHECK_THROWS_AS(v.unfold(0, 3, 2) += 1.f, shape_error);
  CHECK(sum(v).item() == 0);
  v.unfold(0, 2, 2).fill_(1);
  v.unfold(0, 2, 4).add_(1);
  CHECK(list(v) == std::vector<float>{2, 2, 1, 1, 2, 2});
  const tensor<float, 3> cube = zeros<float>({3, 4, 5});
  cube.transpose(0, 2).slice(1, 0, 4, 3).flip(0).diagonal(1, 0, 1).add_(1);
  cube.diagonal(0, 1, 2).slice(0, 0, 3, 2).add_(1);
  cube.diagonal(-1, 0, 2).diagonal().add_(1);
  CHECK(sum(cube).item() == 3 + 8 + 2);
  CHECK_THROWS_WITH(unfold(x, 0, 11, 1), "unfold: a window of 11 elements is larger than axis 0 of shape (10,)");
  CHECK_THROWS_WITH(unfold(x, 0, -1, 1), "unfold: windows of -1 elements; they must be of 0 or more");
  CHECK_THROWS_WITH(unfold(x, 0, 1, 0), "unfold: step 0 must be at least 1");
  CHECK_THROWS_WITH(unfold(x, 1, 1, 1), "unfold: axis 1 is out of range for rank 1; use -1 to 0");
}

TEST_CASE("gradients of replaced parts and of windows") {
  std::mt19937 gen(5);
  const auto x = differences::random(gen, {4, 5});
  const auto row = differences::random(gen, {5});
  const auto diagonal = differences::random(gen, {3});
  const auto part = differences::random(gen, {4, 2});
  differences::check([](const auto& a, const auto& b) { return select_scatter(a * 2, b, 0, 1); }, 20, x, row);
  differences::check([](const auto& a, const auto& b) { return diagonal_scatter(a, b * 3, 2); }, 20, x, diagonal);
  differences::check([](const auto& a, const auto& b) { return slice_scatter(a, b, 1, 0, 4, 2); }, 20, x, part);
  for (const index_t step : {1, 2, 3}) {
    differences::check([&](const auto& a) { return unfold(a, 1, 3, step) * 2; }, 20, x);
    differences::check([&](const auto& a) { return eval(a.unfold(-2, 2, step) * 1) + unfold(a, 0, 2, step); }, 20, x);
  }
  // as many elements in the windows as there are, but not the same ones
  const variable<float, 1> v(ones<float>({4}));
  variable w = sum(v.unfold(0, 2, 2) * 3) + sum(v.unfold(0, 2, 1));
  w.backward();
  CHECK(list(v.grad()) == std::vector<float>{4, 5, 5, 4});
}
