// tests/ops/split_test.cpp: the parts of tensors along an axis, and tensors whose slices come again.
#include "../catch.hpp"
#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

// 0, 1, 2, ... in a shape.
template <int R>
tensor<float, R> counted(const index_t (&shape)[std::size_t{R}]) {
  index_t n = 1;
  for (const index_t e : shape) n *= e;
  return arange<float>(n).reshape(shape);
}

template <class Parts>
std::vector<index_t> extents_along(const Parts& parts, int axis) {
  std::vector<index_t> all;
  for (const auto& part : parts) all.push_back(part.shape()[axis]);
  return all;
}

}  // namespace

TEST_CASE("split cuts an axis into parts of a size, or of listed sizes, which show the tensor") {
  const auto x = counted<2>({5, 3});
  const auto parts = split(x, 2);
  CHECK(extents_along(parts, 0) == std::vector<index_t>{2, 2, 1});
  CHECK(parts[1](1, 2) == 11);
  CHECK(parts[2](0, 0) == 12);
  CHECK(parts[1].data() == x.data() + 6);
  CHECK(extents_along(split(x, {1, 0, 2}, -1), 1) == std::vector<index_t>{1, 0, 2});
  CHECK(split(x, std::vector<index_t>{1, 2}, 1)[1](4, 0) == 13);
  CHECK(split(x + 1, 4)[1](0, 0) == 13);
  CHECK(extents_along(split(counted<2>({0, 3}), 2), 0) == std::vector<index_t>{0});
  CHECK_THROWS_WITH(split(x, 0), "split: parts of 0; they must be of 1 or more");
  CHECK_THROWS_WITH(split(x, {2, 2}), "split: sizes that add up to 4 for an axis of extent 5");
  CHECK_THROWS_WITH(split(x, {6, -1}), "split: a part of -1; sizes must be 0 or more");
  CHECK_THROWS_WITH(split(x, 2, 2), "split: axis 2 is out of range for rank 2; use -2 to 1");
  CHECK_THROWS_WITH(split(x, 2, -3), "split: axis -3 is out of range for rank 2; use -2 to 1");
}

TEST_CASE("chunk and tensor_split make a number of parts, and tensor_split those between cuts") {
  const auto x = counted<1>({10});
  CHECK(extents_along(chunk(x, 4), 0) == std::vector<index_t>{3, 3, 3, 1});
  CHECK(extents_along(chunk(x, 6), 0) == std::vector<index_t>{2, 2, 2, 2, 2});
  CHECK(extents_along(chunk(counted<1>({0}), 3), 0) == std::vector<index_t>{0, 0, 0});
  CHECK(extents_along(tensor_split(x, 4), 0) == std::vector<index_t>{3, 3, 2, 2});
  CHECK(extents_along(tensor_split(x, 12), 0) == std::vector<index_t>{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0});
  CHECK(extents_along(tensor_split(x, {2, -1}), 0) == std::vector<index_t>{2, 7, 1});
  CHECK(extents_along(tensor_split(x, {-20, 30}), 0) == std::vector<index_t>{0, 10, 0});
  CHECK_THROWS_WITH(tensor_split(x, {4, 2}), "tensor_split: a cut at 2 behind one at 4; cuts must not fall");
  CHECK_THROWS_WITH(chunk(x, 0), "chunk: 0 parts; there must be 1 or more");
  CHECK_THROWS_WITH(tensor_split(x, -1), "tensor_split: -1 parts; there must be 1 or more");
}

TEST_CASE("unbind gives the slices along an axis without it") {
  const auto x = counted<2>({2, 3});
  const std::vector<tensor<float, 1>> columns = unbind(x, 1);
  REQUIRE(columns.size() == 3);
  CHECK(columns[2](1) == 5);
  CHECK(unbind(counted<1>({4}))[3].item() == 3);
}

TEST_CASE("repeat, tile and repeat_interleave give slices again") {
  const auto x = counted<2>({2, 3});
  const tensor grid = repeat(x, {2, 2});
  CHECK(grid.shape() == extents<2>{{4, 6}});
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 6; ++j) CHECK(grid(i, j) == x(i % 2, j % 3));
  CHECK(repeat(x, {2, 1, 1}).shape() == extents<3>{{2, 2, 3}});
  CHECK(tile(x, {2}).shape() == extents<2>{{2, 6}});
  CHECK(tile(x, {0, 1}).numel() == 0);
  const tensor twice = repeat_interleave(x, 2, 0);
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 3; ++j) CHECK(twice(i, j) == x(i / 2, j));
  CHECK(repeat_interleave(x.transpose(), 3, -1)(2, 5) == x(1, 2));
  CHECK_THROWS_WITH(repeat(x, {1, -2}), "repeat: -2 times; it must be 0 or more");
  CHECK_THROWS_WITH(repeat_interleave(x, -1, 0), "repeat_interleave: -1 times; it must be 0 or more");
}

TEST_CASE("roll moves slices on, and round the end") {
  const auto x = counted<2>({2, 3});
  const tensor later = roll(x, 1, 1), earlier = roll(x, -4, -1), same = roll(x, 2, 0);
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j) {
      CHECK(later(i, (j + 1) % 3) == x(i, j));
      CHECK(earlier(i, j) == x(i, (j + 4) % 3));
      CHECK(same(i, j) == x(i, j));
    }
  CHECK(roll(counted<1>({0}), 3, 0).numel() == 0);
  CHECK(roll(x, 1)(0, 0) == 5);
  CHECK(roll(x, 1)(1, 0) == 2);
}

TEST_CASE("gradients of parts, copies and moved slices lie where they came from") {
  const variable<float, 2> x(counted<2>({4, 2}));
  const tensor w = counted<2>({4, 2}) + 1;
  const auto parts = split(x, {1, 3});
  variable loss = sum(parts[1] * w.slice(0, 1, 4)) + 3 * sum(unbind(x, 1)[0]);
  loss.backward();
  for (index_t i = 0; i < 4; ++i)
    for (index_t j = 0; j < 2; ++j) CHECK(x.grad()(i, j) == (i > 0 ? w(i, j) : 0) + (j == 0 ? 3 : 0));
  x.zero_grad();
  variable rolled = sum(roll(x, 1, 0) * w);
  rolled.backward();
  for (index_t i = 0; i < 4; ++i) CHECK(x.grad()(i, 1) == w((i + 1) % 4, 1));
  x.zero_grad();
  variable copies = sum(repeat(x, {1, 3})) + sum(repeat_interleave(x, 2, 1)) + sum(tile(x, {2, 1}));
  copies.backward();
  for (index_t i = 0; i < 4; ++i) CHECK(x.grad()(i, 0) == 7);
}
