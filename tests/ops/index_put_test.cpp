// tests/ops/index_put_test.cpp: elements found by value or by a mask, and read and written at coordinates.
#include "../grad/differences.hpp"
#include "../same_bits.hpp"

using namespace sinter;

namespace {

using ids = tensor<std::int64_t, 1>;
const float not_a_number = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();

template <class E>
std::vector<element_of<E>> list(const E& e) {
  const tensor dense = eval(e).contiguous();
  return std::vector<element_of<E>>(dense.begin(), dense.end());
}

}  // namespace

TEST_CASE("searchsorted counts what is less, or not greater") {
  const tensor<float, 1> sorted{1, 3, 3, 7, not_a_number};
  const tensor<float, 1> x{0, 1, 3, 5, 7, inf, not_a_number, -inf};
  CHECK(list(searchsorted(sorted, x)) == std::vector<std::int64_t>{0, 0, 1, 3, 3, 4, 5, 0});
  CHECK(list(searchsorted(sorted, x, true)) == std::vector<std::int64_t>{0, 1, 3, 3, 4, 4, 5, 0});
  CHECK(list(bucketize(x, sorted)) == list(searchsorted(sorted, x)));
  CHECK(list(bucketize(x + 0, sorted, true)) == list(searchsorted(sorted, x, true)));
  CHECK(list(bucketize(x.reshape({2, 4}), sorted)) == list(searchsorted(sorted, x)));
  const tensor<int, 2> lines{{1, 3, 5}, {2, 4, 6}}, values{{3, 4}, {3, 4}};
  CHECK(list(searchsorted(lines, values)) == std::vector<std::int64_t>{1, 2, 1, 1});
  CHECK(list(searchsorted(lines.transpose().clone().transpose(), values, true)) ==
        std::vector<std::int64_t>{2, 2, 1, 2});
  const tensor<int, 1> mixed{5, 1, 3};
  CHECK(list(searchsorted(mixed, tensor<int, 2>{{2, 4}}, argsort(mixed))) == std::vector<std::int64_t>{1, 2});
  CHECK(list(searchsorted(zeros<float>({0}), x.slice(0, 0, 2))) == std::vector<std::int64_t>{0, 0});
  CHECK(searchsorted(sorted, zeros<float>({3, 0})).shape() == extents<2>{{3, 0}});
  CHECK(eval(searchsorted(sorted, full<float>(4))).item() == 3);
  CHECK(list(searchsorted(tensor<half, 1>{1, 2}, tensor<half, 1>{1.5})) == std::vector<std::int64_t>{1});
  CHECK_THROWS_WITH(searchsorted(lines, zeros<int>({3, 2})),
                    "searchsorted: sorted elements of shape (2, 3) for values of shape (3, 2); only the last axis may "
                    "differ");
  const variable<float, 1> v(sorted);
  CHECK(list(searchsorted(v, x)) == list(searchsorted(sorted, x)));
}

TEST_CASE("isin finds the elements that are among others") {
  const tensor<int, 2> x{{1, 2, 3}, {4, 5, 1}};
  CHECK(list(isin(x, tensor<int, 1>{5, 1, 9, 1})) == std::vector<bool>{true, false, false, false, true, true});
  CHECK(list(isin(x, zeros<int>({0}))) == std::vector<bool>(6));
  CHECK(list(isin(tensor<float, 1>{not_a_number, 1, -0.f}, tensor<float, 1>{not_a_number, 0})) ==
        std::vector<bool>{false, false, true});
  CHECK(isin(zeros<int>({0, 2}), x).shape() == extents<2>{{0, 2}});
}

TEST_CASE("nonzero lists coordinates in row-major order") {
  const tensor<float, 2> x{{0, 2, not_a_number}, {-0.f, 0, -1}};
  CHECK(list(nonzero(x)) == std::vector<std::int64_t>{0, 1, 0, 2, 1, 2});
  CHECK(list(argwhere(x.transpose())) == std::vector<std::int64_t>{1, 0, 2, 0, 2, 1});
  CHECK(list(nonzero(x > 0)) == std::vector<std::int64_t>{0, 1});
  CHECK(nonzero(zeros<int>({3, 4})).shape() == extents<2>{{0, 2}});
  CHECK(nonzero(zeros<int>({3, 0, 2})).shape() == extents<2>{{0, 3}});
  CHECK(nonzero(full<float>(5)).shape() == extents<2>{{1, 0}});
  CHECK(nonzero(full<float>(0)).shape() == extents<2>{{0, 0}});
  const tensor wide = full<bool>({1}, true).broadcast_to({7});
  CHECK(nonzero(wide).numel() == 7);
  // as many parts as there are threads and more
  const tensor many = remainder(arange<std::int64_t>(300000), 3) == 1;
  const tensor places = nonzero(many);
  REQUIRE(places.shape() == extents<2>{{100000, 1}});
  CHECK(all(places.flatten() == arange<std::int64_t>(100000) * 3 + 1).item());
}

TEST_CASE("masked_select, masked_fill and masked_scatter work where a mask is true") {
  const tensor x = arange<float>(6).reshape({2, 3});
  const tensor<bool, 1> mask{true, false, true};
  CHECK(list(masked_select(x, mask)) == std::vector<float>{0, 2, 3, 5});
  CHECK(list(masked_select(x, x > 3)) == std::vector<float>{4, 5});
  CHECK(list(masked_select(tensor<float, 1>{7, 8, 9}, tensor<bool, 2>{{true}, {false}, {true}})) ==
        std::vector<float>{7, 8, 9, 7, 8, 9});
  CHECK(list(masked_select(x, 1, mask)) == std::vector<float>{0, 2, 3, 5});
  CHECK(masked_select(x, 0, zeros<bool>({2})).shape() == extents<2>{{0, 3}});
  CHECK(list(masked_fill(x, mask, -1)) == std::vector<float>{-1, 1, -1, -1, 4, -1});
  CHECK(list(masked_fill(x, x > 4, full<float>(9))) == std::vector<float>{0, 1, 2, 3, 4, 9});
  CHECK(list(masked_scatter(x, mask, arange<float>(5) * 10)) == std::vector<float>{0, 1, 10, 20, 4, 30});
  CHECK(list(masked_scatter(x, full<bool>(true), arange<float>(8).reshape({2, 4}))) == list(x));
  CHECK_THROWS_WITH(masked_scatter(x, mask, zeros<float>({3})),
                    "masked_scatter: 4 elements of the mask are true, the source has 3");
  CHECK_THROWS_WITH(masked_select(x, zeros<bool>({2})),
                    "masked_select: shapes (2, 3) and (2,) do not broadcast; aligned at the last axis, extents must be "
                    "equal or 1");
  CHECK_THROWS_WITH(masked_select(x, 1, zeros<bool>({2})),
                    "masked_select: a mask of 2 elements for axis 1 of shape (2, 3)");
}

TEST_CASE("index_get reads slices at coordinates and masks") {
  const tensor x = arange<int>(24).reshape({2, 3, 4});
  const tensor<int, 1> i{0, 1, -1}, j{2, -3, 1};
  CHECK(list(index_get(x, {i})) == list(index_select(x, 0, tensor<int, 1>{0, 1, 1})));
  const tensor rows = index_get(x, {i, j});
  CHECK(rows.shape() == extents<2>{{3, 4}});
  CHECK(list(rows) == std::vector<int>{8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19});
  CHECK(list(index_get(x, {i, j, i})) == std::vector<int>{8, 13, 19});
  const tensor<int, 2> column{{0}, {1}}, row{{2, 0}, {2, 0}};
  CHECK(list(index_get(x[0], {column, row.slice(0, 0, 1)})) == std::vector<int>{2, 0, 6, 4});
  CHECK(list(index_get(x.transpose(0, 2), {i})) == list(index_select(x, 2, tensor<int, 1>{0, 1, 3}).transpose(0, 2)));
  CHECK(index_get(x, {zeros<int>({0})}).shape() == extents<3>{{0, 3, 4}});
  const tensor mask = index_get(x, {zeros<int>({1})})[0] > 7;
  CHECK(list(index_get(x[1], mask)) == std::vector<int>{20, 21, 22, 23});
  CHECK(list(index_get(x, tensor<bool, 1>{false, true})) == list(x[1]));
  CHECK(index_get(x, zeros<bool>({2, 3})).shape() == extents<2>{{0, 4}});
  CHECK_THROWS_WITH(index_get(x, {i, eval(j + 1)}), "index_get: index 3 at position 0 is out of range [0, 3)");
  CHECK_THROWS_WITH(index_get(x, {i - 3}), "index_get: index -3 at position 0 is out of range [0, 2)");
  CHECK_THROWS_WITH(index_get(x, zeros<bool>({2, 4})), "index_get: a mask of shape (2, 4) for x of shape (2, 3, 4)");
}

TEST_CASE("index_put writes and folds at coordinates") {
  const tensor x = arange<float>(12).reshape({3, 4});
  const ids i{0, 2, 0}, j{1, -1, 1};
  const tensor<float, 1> v{10, 20, 30};
  CHECK(list(index_put(x, {i, j}, v)) == std::vector<float>{0, 30, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20});
  CHECK(list(index_put(x, {i, j}, v, reduction::sum)) == std::vector<float>{0, 41, 2, 3, 4, 5, 6, 7, 8, 9, 10, 31});
  CHECK(list(index_put(x, {i, j}, v, reduction::prod)) == std::vector<float>{0, 300, 2, 3, 4, 5, 6, 7, 8, 9, 10, 220});
  CHECK(list(index_put(x, {i}, arange<float>(4), reduction::min)) ==
        std::vector<float>{0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3});
  CHECK(list(index_put(x, {i}, -1)) == std::vector<float>{-1, -1, -1, -1, 4, 5, 6, 7, -1, -1, -1, -1});
  CHECK(list(index_put(x > 3, {i, j}, true)) ==
        std::vector<bool>{false, true, false, false, true, true, true, true, true, true, true, true});
  CHECK(list(index_put(x, {zeros<int>({0})}, 5)) == list(x));
  CHECK_THROWS_WITH(index_put(x, {i, j}, zeros<float>({2})),
                    "index_put: values of shape (2,) do not broadcast to (3,), which the indices ask for");
  CHECK_THROWS_WITH(index_put(x, {i + 1}, 0), "index_put: index 3 at position 1 is out of range [0, 3)");
}

TEST_CASE("take and take_along_dim count from both ends") {
  const tensor x = arange<int>(6).reshape({2, 3});
  CHECK(list(take(x, tensor<int, 2>{{5, 0}, {-1, -6}})) == std::vector<int>{5, 0, 5, 0});
  CHECK(take(full<int>(7), zeros<std::int64_t>()).item() == 7);
  CHECK(take(x, zeros<int>({0})).numel() == 0);
  CHECK(list(take_along_dim(x, 1, tensor<int, 2>{{0, -1}, {1, 1}})) == std::vector<int>{0, 2, 4, 4});
  CHECK(list(take_along_dim(x, 1, tensor<int, 2>{{2}})) == std::vector<int>{2, 5});
  CHECK(list(take_along_dim(x.slice(0, 0, 1), -1, tensor<int, 2>{{2}, {0}})) == std::vector<int>{2, 0});
  CHECK(list(take_along_dim(x, tensor<int, 2>{{5}, {-5}})) == std::vector<int>{5, 1});
  CHECK_THROWS_WITH(take(x, tensor<int, 1>{6}), "take: index 6 at position 0 is out of range [0, 6)");
  CHECK_THROWS_WITH(take_along_dim(x, 1, zeros<int>({3, 1})),
                    "take_along_dim: shapes (2, 1) and (3, 1) do not broadcast; aligned at the last axis, extents must "
                    "be equal or 1");
}

TEST_CASE("one_hot marks classes") {
  CHECK(list(one_hot(tensor<int, 1>{2, 0}, 3)) == std::vector<std::int64_t>{0, 0, 1, 1, 0, 0});
  CHECK(one_hot(tensor<int, 2>{{1, 3}}).shape() == extents<3>{{1, 2, 4}});
  CHECK(one_hot(zeros<int>({0}), 3).shape() == extents<2>{{0, 3}});
  CHECK(list(one_hot(full<int>(1), 2)) == std::vector<std::int64_t>{0, 1});
  CHECK_THROWS_WITH(one_hot(tensor<int, 1>{2, 0}, 2), "one_hot: class 2 at position 0 is out of range [0, 2)");
  CHECK_THROWS_WITH(one_hot(tensor<int, 1>{2}, -2), "one_hot: -2 classes; give 0 or more, or none");
}

TEST_CASE("gradients go to the elements that were read or written") {
  std::mt19937 gen(5);
  const auto x = differences::random(gen, {3, 4});
  const ids i{0, 2, 0}, j{1, -1, 1};
  const auto check = [&](const auto& f) { differences::check(f, 12, x); };
  check([&](const auto& a) { return index_get(a * 2, {i, j}); });
  check([&](const auto& a) { return index_get(a, tensor<bool, 1>{true, false, true}); });
  check([&](const auto& a) { return take(a, tensor<int, 2>{{5, 5, -1}}); });
  check([&](const auto& a) { return take_along_dim(a, 1, tensor<int, 2>{{1, -1, 1}}); });
  check([&](const auto& a) { return take_along_dim(a.slice(0, 0, 1), 1, tensor<int, 2>{{1}, {2}, {1}}); });
  check([&](const auto& a) { return masked_select(a, x > 0); });
  check([&](const auto& a) { return masked_select(a, 1, tensor<bool, 1>{true, false, true, true}); });
  check([&](const auto& a) { return masked_fill(a, x > 0, 3); });
  const auto v = differences::random(gen, {3});
  const auto w = differences::random(gen, {2, 7});
  const auto both = [&](const auto& f, const auto& values) { differences::check(f, 14, x, values); };
  both([&](const auto& a, const auto& b) { return index_put(a, {i, j}, b, reduction::sum); }, v);
  both([&](const auto& a, const auto& b) { return index_put(a, {i, j}, b, reduction::prod); }, v);
  both([&](const auto& a, const auto& b) { return index_put(a, {ids{2, 1, 0}, ids{3, 1, 0}}, b); }, v);
  both([&](const auto& a, const auto& b) { return index_put(a, {ids{2, 0}}, b.slice(0, 0, 1).broadcast_to({4})); }, v);
  both([&](const auto& a, const auto& b) { return masked_scatter(a, x > 0, b); }, w);
}
