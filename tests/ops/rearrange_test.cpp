// tests/ops/rearrange_test.cpp: axes that are moved, parted or reversed, tensors that are stacked and laid out as
// grids.
#include "../catch.hpp"

#include "sinter/sinter.hpp"

using namespace sinter;

namespace {

const tensor<float, 3> cube = arange<float>(24).reshape({2, 3, 4});
const tensor<float, 2> matrix = arange<float>(6).reshape({2, 3});
const tensor<float, 1> a = {1, 2, 3}, b = {4, 5};

template <class X>
bool same(const X& x, const X& y) {
  return x.shape() == y.shape() && eval(all(x == y)).item();
}

}  // namespace

TEST_CASE("movedim moves axes and keeps the order of the others") {
  CHECK(same(movedim(cube, 0, -1), cube.permute({1, 2, 0})));
  CHECK(same(movedim(cube, -1, 0), cube.permute({2, 0, 1})));
  CHECK(same(movedim(cube, 1, 1), cube));
  CHECK(same(movedim(cube, {0, 1}, {2, 0}), cube.permute({1, 2, 0})));
  CHECK(same(movedim(cube, {0, -1, 1}, {-3, -2, -1}), cube.permute({0, 2, 1})));
  CHECK(movedim(cube, 0, 2).data() == cube.data());
  CHECK_THROWS_AS(movedim(cube, 3, 0), index_error);
  CHECK_THROWS_WITH(movedim(cube, {0, -3}, {0, 1}), "movedim: axis 0 is named twice");
  CHECK_THROWS_WITH(movedim(cube, {0, 1}, {2, -1}), "movedim: axis 2 is named twice");
}

TEST_CASE("unflatten parts an axis") {
  const tensor<float, 4> parted = unflatten(cube, -1, {2, 2});
  CHECK((parted.shape() == extents<4>{{2, 3, 2, 2}} && parted(1, 2, 1, 0) == cube(1, 2, 2)));
  CHECK(unflatten(cube, 1, {-1, 3, 1}).shape() == extents<5>{{2, 1, 3, 1, 4}});
  CHECK(unflatten(a, 0, {3}).data() == a.data());
  CHECK(unflatten(zeros<float>({0, 2}), 0, {0, 5}).shape() == extents<3>{{0, 5, 2}});
  CHECK_THROWS_WITH(unflatten(cube, 1, {2, 2}), "unflatten: (2, 2) for an axis of extent 3; the product must be that");
  CHECK_THROWS_WITH(unflatten(cube, 1, {2, -1}),
                    "unflatten: (2, -1) for an axis of extent 3; the product must be that");
  CHECK_THROWS_WITH(unflatten(cube, 1, {-1, -1}), "unflatten: (-1, -1) has a negative size (only one may be -1)");
  CHECK_THROWS_WITH(unflatten(zeros<float>({0}), 0, {0, -1}),
                    "unflatten: (0, -1) for an axis of extent 0; the product must be that");
}

TEST_CASE("flip, fliplr and flipud reverse axes, rot90 turns") {
  CHECK(same(flip(cube, {0, -1}), cube.flip(0).flip(2)));
  CHECK((fliplr(matrix)(0, 0) == 2 && flipud(matrix)(0, 0) == 3 && flipud(a)(0) == 3));
  CHECK_THROWS_WITH(flip(cube, {0, -3}), "flip: axis 0 is named twice");
  const tensor<float, 2> quarter = rot90(matrix);
  CHECK((quarter.shape() == extents<2>{{3, 2}} && quarter(0, 0) == 2 && quarter(2, 0) == 0 && quarter(0, 1) == 5));
  CHECK(same(rot90(matrix, 2), matrix.flip(0).flip(1)));
  CHECK(same(rot90(matrix, -1), rot90(matrix, 3)));
  CHECK(same(rot90(rot90(matrix, 3)), matrix));
  CHECK(same(rot90(matrix, 4), matrix));
  CHECK(same(rot90(matrix, 1, 1, 0), rot90(matrix, -1)));
  CHECK_THROWS_WITH(rot90(matrix, 1, 0, -2), "rot90: axis 0 is named twice");
}

TEST_CASE("tensors are stacked beside, below and behind each other") {
  const tensor<float, 1> line = hstack(a, b);
  CHECK((line.shape() == extents<1>{{5}} && line(3) == 4));
  CHECK((hstack(matrix, matrix + 1).shape() == extents<2>{{2, 6}}));
  CHECK((hstack(full<float>(1), full<float>(2))(1) == 2));
  const tensor<float, 2> rows = vstack(a, a + 1), more = vstack({matrix, matrix});
  CHECK((rows.shape() == extents<2>{{2, 3}} && rows(1, 0) == 2 && more.shape() == extents<2>{{4, 3}}));
  CHECK(vstack(full<float>(1), full<float>(2)).shape() == extents<2>{{2, 1}});
  const tensor<float, 3> layers = dstack(a, a + 1), deep = dstack(std::vector{matrix, matrix}),
                         same_rank = dstack(cube, cube);
  CHECK((layers.shape() == extents<3>{{1, 3, 2}} && layers(0, 2, 1) == 4));
  CHECK((deep.shape() == extents<3>{{2, 3, 2}} && same_rank.shape() == extents<3>{{2, 3, 8}}));
  const tensor<float, 2> columns = column_stack(a, a * 2), wide = column_stack(matrix, matrix);
  CHECK((columns.shape() == extents<2>{{3, 2}} && columns(2, 1) == 6 && wide.shape() == extents<2>{{2, 6}}));
  CHECK_THROWS_WITH(vstack(a, b), "vstack: shapes (1, 3) and (1, 2) differ outside axis 0");
  CHECK_THROWS_WITH(hstack(std::vector<tensor<float, 2>>{}), "hstack: there are no tensors");
  CHECK_THROWS_AS(hstack(a, tensor<float, 1>()), shape_error);
}

TEST_CASE("hsplit, vsplit and dsplit give equal parts, or those between cuts") {
  CHECK((hsplit(cube, 3).size() == 3 && hsplit(cube, 3)[2](1, 0, 0) == cube(1, 2, 0)));
  CHECK((hsplit(arange<float>(6), 2)[1](0) == 3));
  CHECK((vsplit(cube, {1})[1](0, 0, 0) == 12 && vsplit(cube, 2).size() == 2));
  CHECK((dsplit(cube, {1, 3}).size() == 3 && dsplit(cube, 2)[1](0, 0, 0) == 2));
  CHECK_THROWS_WITH(hsplit(cube, 2), "hsplit: 2 parts of an axis of extent 3, which is no multiple; see tensor_split");
  CHECK_THROWS_WITH(vsplit(cube, 0), "vsplit: 0 parts; there must be 1 or more");
}

TEST_CASE("meshgrid, cartesian_prod and broadcast_tensors lay tensors out against each other") {
  const auto [x, y] = meshgrid(a, b);
  CHECK((x.shape() == extents<2>{{3, 2}} && x(2, 1) == 3 && y(2, 1) == 5 && y(0, 0) == 4));
  CHECK(x.data() == a.data());
  const auto [across, down] = meshgrid(indexing::xy, a, b);
  CHECK((across.shape() == extents<2>{{2, 3}} && across(1, 2) == 3 && down(1, 2) == 5));
  const auto three = meshgrid(indexing::xy, a, full<float>(7), b);
  CHECK((three[0].shape() == extents<3>{{1, 3, 2}} && three[1](0, 2, 1) == 7 && three[2](0, 2, 1) == 5));
  CHECK(same(meshgrid(a)[0], a));
  const tensor<float, 2> pairs = cartesian_prod(a, b);
  CHECK((pairs.shape() == extents<2>{{6, 2}} && pairs(1, 0) == 1 && pairs(1, 1) == 5 && pairs(4, 0) == 3));
  CHECK(same(cartesian_prod(b), b));
  const auto [wide, high] = broadcast_tensors(a, matrix.unsqueeze(1));
  CHECK((wide.shape() == extents<3>{{2, 1, 3}} && wide(1, 0, 2) == 3 && high(1, 0, 0) == 3 && high(0, 0, 2) == 2));
  CHECK_THROWS_AS(broadcast_tensors(a, b), shape_error);
}

TEST_CASE("block_diag sets matrices on a diagonal") {
  const tensor<float, 2> all = block_diag(matrix, b, full<float>(9));
  CHECK(all.shape() == extents<2>{{4, 6}});
  CHECK((all(1, 2) == 5 && all(2, 3) == 4 && all(2, 4) == 5 && all(3, 5) == 9));
  CHECK(eval(sum(all)).item() == 15 + 9 + 9);
  CHECK(block_diag(zeros<float>({0, 2}), matrix).shape() == extents<2>{{2, 5}});
}

TEST_CASE("diag_embed takes axes, diagflat all elements") {
  const tensor<float, 3> m = diag_embed(matrix, 1, 0, 2);
  CHECK(m.shape() == extents<3>{{4, 2, 4}});
  CHECK((m(0, 1, 1) == matrix(1, 0) && m(2, 0, 3) == matrix(0, 2) && eval(sum(m)).item() == 15));
  CHECK(same(diag_embed(matrix, -1, -1, -2), diag_embed(matrix, 1)));
  CHECK_THROWS_WITH(diag_embed(matrix, 0, 1, -2), "diag_embed: axis 1 is named twice");
  CHECK(same(diagflat(matrix, 1), diag_embed(matrix.flatten(), 1)));
  CHECK(diagflat(full<float>(3))(0, 0) == 3);
}

TEST_CASE("repeat_interleave takes a number for each slice, and all elements") {
  CHECK((repeat_interleave(matrix, 2).shape() == extents<1>{{12}} && repeat_interleave(matrix, 2)(3) == 1));
  CHECK(repeat_interleave(full<float>(4), 2)(1) == 4);
  const tensor<float, 2> rows = repeat_interleave(matrix, tensor<int, 1>{0, 3}, 0);
  CHECK((rows.shape() == extents<2>{{3, 3}} && rows(0, 0) == 3 && rows(2, 2) == 5));
  CHECK(repeat_interleave(matrix, tensor<int, 1>{2}, 1)(0, 3) == 1);
  const tensor<float, 1> each = repeat_interleave(b, tensor<std::uint8_t, 1>{1, 2});
  CHECK((each.shape() == extents<1>{{3}} && each(2) == 5));
  CHECK(repeat_interleave(b, tensor<int, 1>{0, 0}).numel() == 0);
  const variable<float, 2> v(matrix);
  variable total = sum(repeat_interleave(v, tensor<int, 1>{0, 3}, 0) * rows);
  total.backward();
  CHECK((v.grad()(0, 1) == 0 && v.grad()(1, 1) == 12));
  CHECK_THROWS_WITH(repeat_interleave(matrix, tensor<int, 1>{1, 2, 3}, 0),
                    "repeat_interleave: 3 numbers for 2 slices; each has one");
  CHECK_THROWS_WITH(repeat_interleave(matrix, tensor<int, 1>{1, -2}, 0),
                    "repeat_interleave: -2 times; it must be 0 or more");
}

TEST_CASE("gradients go back through moved, stacked and spread axes") {
  const variable<float, 2> m(matrix);
  const variable<float, 1> v(a);
  const auto grids = meshgrid(v, b);
  variable loss = sum(movedim(m, 0, 1) * movedim(matrix, 0, 1)) + sum(rot90(m) * rot90(matrix)) +
                  sum(unflatten(m, 1, {3, 1})) + sum(fliplr(m)) + sum(grids[0] * 5) + sum(grids[1]) +
                  sum(cartesian_prod(v, b)) + sum(hstack(v, b)) + sum(vstack(v, a) * 2) + sum(column_stack(a, v)) +
                  sum(block_diag(m, v)) + sum(hsplit(m, {1})[1]) + sum(std::get<0>(broadcast_tensors(v, matrix)));
  loss.backward();
  for (index_t i = 0; i < 2; ++i)
    for (index_t j = 0; j < 3; ++j) CHECK(m.grad()(i, j) == 2 * matrix(i, j) + 3 + (j > 0 ? 1.f : 0.f));
  for (index_t j = 0; j < 3; ++j) CHECK(v.grad()(j) == 10 + 2 + 1 + 2 + 1 + 1 + 2);
}

template <class X>
concept flips_columns = requires(const X& x) { fliplr(x); };
template <class X, class Y>
concept meshes = requires(const X& x, const Y& y) { meshgrid(x, y); };
template <class X, class Y>
concept stacks = requires(const X& x, const Y& y) { vstack(x, y); };
template <class X, class C>
concept repeats = requires(const X& x, const C& c) { repeat_interleave(x, c, 0); };

using vector = tensor<float, 1>;
static_assert(flips_columns<tensor<float, 2>> && !flips_columns<vector>);
static_assert(meshes<vector, tensor<float, 0>> && !meshes<vector, tensor<double, 1>>);
static_assert(!meshes<vector, tensor<float, 2>> && !meshes<vector, tensor<float, 1, numa<0>>>);
static_assert(stacks<vector, vector> && !stacks<vector, tensor<float, 2>> &&
              !stacks<vector, tensor<float, 1, numa<0>>>);
static_assert(repeats<vector, tensor<int, 1>> && !repeats<vector, vector> && !repeats<vector, tensor<int, 2>>);
static_assert(!repeats<vector, tensor<int, 1, numa<0>>>);
