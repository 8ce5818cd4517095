// tests/ops/scatter_test.cpp: elements and slices written at indices, against plain loops.
#include "../grad/differences.hpp"
#include "../same_bits.hpp"

using namespace sinter;

namespace {

using ids = tensor<std::int64_t, 2>;

/// What goes to each element of x, in order.
template <class T>
std::vector<std::vector<T>> sent(const tensor<T, 2>& x, int axis, const ids& index, const tensor<T, 2>& src) {
  std::vector<std::vector<T>> all(static_cast<std::size_t>(x.numel()));
  for (index_t i = 0; i < index.extent(0); ++i)
    for (index_t j = 0; j < index.extent(1); ++j) {
      const index_t row = axis == 0 ? index(i, j) : i, column = axis == 1 ? index(i, j) : j;
      all[static_cast<std::size_t>(row * x.extent(1) + column)].push_back(src(i, j));
    }
  return all;
}
/// fold(x or nothing, what goes there) for each element; x where nothing goes.
template <class T, class F>
tensor<T, 2> folded(const tensor<T, 2>& x, int axis, const ids& index, const tensor<T, 2>& src, bool include_self,
                    const F& fold) {
  const auto all = sent(x, axis, index, src);
  tensor<T, 2> y = empty<T>(x.shape());
  for (index_t k = 0; k < x.numel(); ++k) {
    std::vector<T> values;
    const auto& arrived = all[static_cast<std::size_t>(k)];
    const T own = x(k / x.extent(1), k % x.extent(1));
    if (include_self || arrived.empty()) values.push_back(own);
    values.insert(values.end(), arrived.begin(), arrived.end());
    y.data()[k] = fold(values);
  }
  return y;
}

template <class T>
T sum_of(const std::vector<T>& v) {
  T total = 0;
  for (const T x : v) total = static_cast<T>(total + x);
  return total;
}
template <class T>
T product_of(const std::vector<T>& v) {
  T total = 1;
  for (const T x : v) total = static_cast<T>(total * x);
  return total;
}

/// Indices up to n - 1, with many equal ones.
ids random_ids(std::mt19937& gen, index_t rows, index_t columns, index_t n) {
  ids index = empty<std::int64_t>({rows, columns});
  for (std::int64_t& i : index) i = static_cast<std::int64_t>(gen() % static_cast<unsigned>(n));
  return index;
}

template <class T, class How, class F>
void check_reduction(const How& how, const F& fold) {
  std::mt19937 gen(7);
  for (const int axis : {0, 1}) {
    const tensor<T, 2> x = cast<T>(differences::random(gen, {6, 9}, -9, 9));
    const tensor<T, 2> src = cast<T>(differences::random(gen, {7, 8}, -9, 9));
    const ids index = axis == 0 ? random_ids(gen, 7, 8, 6) : random_ids(gen, 6, 8, 9);
    for (const bool self : {true, false}) {
      const tensor<T, 2> y = scatter_reduce(x, axis, index, src, how, self);
      CHECK(allclose(cast<double>(y), cast<double>(folded(x, axis, index, src, self, fold)), {.rtol = 1e-6}));
      const tensor<T, 2> strided =
          scatter_reduce(x.transpose().clone().transpose(), axis - 2, index, src.flip(0).clone().flip(0), how, self);
      CHECK(same_bits(strided, y));
    }
  }
}

}  // namespace

TEST_CASE("scatter writes elements of a source, or a number, where indices point") {
  const tensor x = arange<float>(6).reshape({2, 3});
  const ids index{{0, 2}, {1, 1}};
  const tensor<float, 2> src{{10, 20}, {30, 40}};
  CHECK(same_bits(scatter(x, 1, index, src), tensor<float, 2>{{10, 1, 20}, {3, 40, 5}}));
  CHECK(same_bits(scatter(x, -1, cast<int>(index), 7), tensor<float, 2>{{7, 1, 7}, {3, 7, 5}}));
  CHECK(same_bits(scatter(x, 0, ids{{1, 0, 1}}, tensor<float, 2>{{9, 8, 7}}), tensor<float, 2>{{0, 8, 2}, {9, 4, 7}}));
  CHECK(same_bits(x, arange<float>(6).reshape({2, 3})));
  CHECK(same_bits(scatter(x > 2, 1, index, true), tensor<bool, 2>{{true, false, true}, {true, true, true}}));
  CHECK(same_bits(scatter(zeros<int>({4}), 0, tensor<int, 1>{3, 0}, tensor<int, 1>{5, 6}), tensor<int, 1>{6, 0, 0, 5}));
  // an index smaller than the source, and one without elements
  CHECK(same_bits(scatter(x, 1, ids{{2}}, src), tensor<float, 2>{{0, 1, 10}, {3, 4, 5}}));
  CHECK(same_bits(scatter(x, 1, zeros<std::int64_t>({2, 0}), src), x));
  CHECK(scatter(zeros<float>({0, 3}), 1, zeros<std::int64_t>({0, 2}), 1).shape() == extents<2>{{0, 3}});
  CHECK(float(scatter(full<half>({2}, 1), 0, tensor<int, 1>{1}, 0.5)(1)) == 0.5f);
}

TEST_CASE("scatter_reduce folds what goes to one place, in order") {
  check_reduction<float>(reduction::sum, sum_of<float>);
  check_reduction<double>(reduction::prod, product_of<double>);
  check_reduction<std::int64_t>(reduction::sum, sum_of<std::int64_t>);
  check_reduction<std::int8_t>(reduction::prod, product_of<std::int8_t>);
  check_reduction<double>(reduction::mean, [](const auto& v) { return sum_of(v) / static_cast<double>(v.size()); });
  check_reduction<float>(reduction::max, [](const auto& v) { return *std::max_element(v.begin(), v.end()); });
  check_reduction<int>(reduction::max, [](const auto& v) { return *std::max_element(v.begin(), v.end()); });
  check_reduction<half>(reduction::min, [](const auto& v) { return *std::min_element(v.begin(), v.end()); });
  check_reduction<std::uint8_t>(reduction::min, [](const auto& v) { return *std::min_element(v.begin(), v.end()); });
}

TEST_CASE("a fold of half and bfloat16 is rounded once") {
  const tensor<std::int64_t, 1> index = zeros<std::int64_t>({300});
  const tensor<half, 1> y = scatter_add(full<half>({1}, 2048), 0, index, full<half>({300}, 1));
  CHECK(float(y(0)) == 2348.f);
  const tensor<bfloat16, 1> m =
      scatter_reduce(full<bfloat16>({1}, 1), 0, index, full<bfloat16>({300}, 1.0078125), reduction::mean);
  CHECK(std::abs(float(m(0)) - 1.0078125f) < 0.004f);
  const tensor<half, 1> p =
      scatter_reduce(full<half>({1}, 0.5), 0, index.slice(0, 0, 20), full<half>({20}, 1.01), reduction::prod);
  CHECK(std::abs(float(p(0)) - 0.5f * std::pow(float(half(1.01)), 20.f)) < 0.0005f);
}

TEST_CASE("scatter_reduce with NaN, infinities and zeros") {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const tensor<std::int64_t, 1> index{0, 0, 1, 1, 2};
  const tensor<float, 1> src{1, nan, -inf, -inf, 3}, x{0, 5, nan};
  CHECK(same_bits(eval(isnan(scatter_reduce(x, 0, index, src, reduction::max))), tensor<bool, 1>{true, false, true}));
  const tensor<float, 1> lowest = scatter_reduce(x, 0, index, src, reduction::max, false);
  CHECK(lowest(1) == -inf);
  CHECK(lowest(2) == 3);
}

TEST_CASE("sums of many elements of one place are gathered in order, whatever the number of threads") {
  std::mt19937 gen(3);
  const tensor<float, 2> x = cast<float>(differences::random(gen, {50, 400}));
  const tensor<float, 2> src = cast<float>(differences::random(gen, {5000, 400}));
  const ids index = random_ids(gen, 5000, 400, 50);
  const tensor<float, 2> expected = folded(x, 0, index, src, true, sum_of<float>);
  const int before = num_threads();
  for (const int n : {1, 2, 3}) {
    set_num_threads(n);
    CHECK(same_bits(scatter_add(x, 0, index, src), expected));
  }
  set_num_threads(before);
}

TEST_CASE("index_copy, index_fill, index_add and index_reduce write whole slices") {
  const tensor x = arange<float>(12).reshape({3, 4});
  const tensor<std::int64_t, 1> rows{2, 0, 2};
  const tensor src = arange<float>(12).reshape({3, 4}) * 10 + 100;
  const tensor copied = index_copy(x, 0, rows, src), filled = index_fill(x, -1, tensor<int, 1>{1, 3}, -1);
  const tensor added = index_add(x, 0, rows, src, -0.5), least = index_reduce(x, 0, rows, src, reduction::min, false);
  const tensor means = index_reduce(x, 0, rows, src, reduction::mean);
  for (index_t j = 0; j < 4; ++j) {
    CHECK(copied(0, j) == src(1, j));
    CHECK(copied(1, j) == x(1, j));
    CHECK(copied(2, j) == src(2, j));
    CHECK(filled(2, j) == (j % 2 == 1 ? -1 : x(2, j)));
    CHECK(added(0, j) == x(0, j) - 0.5f * src(1, j));
    CHECK(added(2, j) == x(2, j) - 0.5f * src(0, j) - 0.5f * src(2, j));
    CHECK(least(2, j) == src(0, j));
    CHECK(least(1, j) == x(1, j));
    CHECK(means(2, j) == (x(2, j) + src(0, j) + src(2, j)) / 3);
  }
  CHECK(same_bits(index_add(cast<int>(x), 1, tensor<int, 1>{3}, ones<int>({3, 1}), 2),
                  tensor<int, 2>{{0, 1, 2, 5}, {4, 5, 6, 9}, {8, 9, 10, 13}}));
}

TEST_CASE("gradients of scatters are those of what they compute") {
  std::mt19937 gen(11);
  const auto x = differences::random(gen, {4, 5}), src = differences::random(gen, {5, 4});
  const ids index = random_ids(gen, 5, 4, 4);
  const auto check = [&](const auto& f) { differences::check(f, 20, x, src); };
  check([&](const auto& a, const auto& b) { return scatter_add(a * 1, 0, index, b * 2); });
  for (const bool self : {true, false}) {
    check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, index, b, reduction::sum, self); });
    check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, index, b, reduction::mean, self); });
    check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, index, b, reduction::prod, self); });
    check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, index, b, reduction::max, self); });
    check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, index, b, reduction::min, self); });
  }
  const tensor<std::int64_t, 1> rows{3, 0, 3, 1};
  differences::check([&](const auto& a, const auto& b) { return index_add(a, 1, rows, b, 0.3); }, 20, x,
                     differences::random(gen, {4, 4}));
  differences::check([&](const auto& a) { return index_fill(a, 1, rows, 2); }, 20, x);
  // without equal indices, where the derivative of scatter is that of its result
  const tensor<std::int64_t, 1> apart{3, 0, 1};
  differences::check([&](const auto& a, const auto& b) { return index_copy(a, 0, apart, b); }, 20, x,
                     differences::random(gen, {3, 5}));
  const ids once{{0, 3, 2, 1}, {1, 0, 3, 2}};
  differences::check([&](const auto& a, const auto& b) { return scatter(a, 0, once, b); }, 20, x, src);
}

TEST_CASE("gradients of zeros in products, of equals in extremes, and of what was written over") {
  const tensor<std::int64_t, 1> index{0, 0, 0, 1, 1, 2};
  const variable<float, 1> x(tensor<float, 1>{2, 0, 5, 7}), src(tensor<float, 1>{3, 0, 4, 0, 6, 5});
  const tensor<float, 1> g{1, 10, 100, 1000};
  variable product = scatter_reduce(x, 0, index, src, reduction::prod);
  product.backward(g);
  CHECK(same_bits(x.grad(), tensor<float, 1>{0, 0, 500, 1000}));
  CHECK(same_bits(src.grad(), tensor<float, 1>{0, 24, 0, 0, 0, 500}));
  x.zero_grad();
  src.zero_grad();
  variable most = scatter_reduce(x, 0, index, tensor<float, 1>{2, 2, 1, 0, -1, 5} + src * 0, reduction::max);
  most.backward(g);
  CHECK(allclose(x.grad(), tensor<float, 1>{1.f / 3, 5, 50, 1000}));
  x.zero_grad();
  variable without = scatter_reduce(x, 0, index, src, reduction::min, false);
  without.backward(g);
  CHECK(same_bits(x.grad(), tensor<float, 1>{0, 0, 0, 1000}));
  CHECK(same_bits(src.grad(), tensor<float, 1>{0, 1, 0, 10, 0, 100}));
  x.zero_grad();
  src.zero_grad();
  variable last = scatter(x, 0, index, src);
  CHECK(last(0) == 4);
  last.backward(g);
  CHECK(same_bits(x.grad(), tensor<float, 1>{0, 0, 0, 1000}));
  CHECK(same_bits(src.grad(), tensor<float, 1>{1, 1, 1, 10, 10, 100}));
}

TEST_CASE("a tensor without axes is a line of one element for scatters") {
  const variable<double, 0> x(full<double>(2)), src(full<double>(5));
  const tensor<int, 0> at = zeros<int>();
  CHECK(scatter(x, 0, at, src).item() == 5);
  CHECK(scatter(x.value(), -1, at, 7).item() == 7);
  CHECK(index_copy(x, 0, zeros<int>({1}), src).item() == 5);
  CHECK(index_fill(x, 0, at, 1).item() == 1);
  CHECK(index_add(x, 0, zeros<int>({1}), src, -1).item() == -3);
  variable mean = scatter_reduce(x, 0, at, src, reduction::mean);
  CHECK(mean.item() == 3.5);
  variable product = index_reduce(mean, 0, at, src, reduction::prod);
  product.backward();
  CHECK(x.grad().item() == 2.5);
  CHECK(src.grad().item() == 6);
  CHECK_THROWS_WITH(scatter(x, 1, at, src), "scatter: axis 1 is out of range for rank 1; use -1 to 0");
  CHECK_THROWS_WITH(index_copy(x, 0, zeros<int>({2}), src),
                    "index_copy: a source of shape (1,); x and the index on axis 0 ask for (2,)");
}

TEST_CASE("scatters say what does not fit") {
  const tensor x = zeros<float>({2, 3});
  const ids index = zeros<std::int64_t>({2, 2});
  const tensor src = zeros<float>({2, 2});
  CHECK_THROWS_WITH(scatter(x, 2, index, src), "scatter: axis 2 is out of range for rank 2; use -2 to 1");
  CHECK_THROWS_WITH(scatter(x, 1, index + 3, src), "scatter: index 3 at position 0 is out of range [0, 3)");
  CHECK_THROWS_WITH(scatter_add(x, 1, index - 1, src), "scatter_add: index -1 at position 0 is out of range [0, 3)");
  CHECK_THROWS_WITH(scatter(x, 1, zeros<int>({3, 1}), zeros<float>({3, 1})),
                    "scatter: index of shape (3, 1) is larger than x of shape (2, 3) on axis 0");
  CHECK_THROWS_WITH(scatter_reduce(x, 1, index, zeros<float>({2, 1}), reduction::max),
                    "scatter_reduce: index of shape (2, 2) is larger than the source of shape (2, 1) on axis 1");
  CHECK_THROWS_WITH(index_add(x, 0, tensor<int, 1>{0}, zeros<float>({1, 2})),
                    "index_add: a source of shape (1, 2); x and the index on axis 0 ask for (1, 3)");
  CHECK_THROWS_WITH(index_fill(cast<std::uint8_t>(x), 0, tensor<int, 1>{0}, 300),
                    "300 does not fit elements of type uint8");
  CHECK_THROWS_WITH(scatter(tensor<float, 2>(), 0, index, src),
                    "scatter: an operand is an empty (default constructed) tensor");
  CHECK_THROWS_WITH(scatter(x, 0, index, tensor<float, 2>()),
                    "scatter: an operand is an empty (default constructed) tensor");
}

TEST_CASE("max_unpool puts back what max_pool took") {
  const tensor x = arange<float>(2 * 2 * 5 * 6).reshape({2, 2, 5, 6}) + 1;
  const auto [values, indices] = max_pool2d_with_indices(x, 2, {.stride = {2, 3}});
  const tensor y = max_unpool2d(values, indices, 2, {.stride = {2, 3}, .output_size = {5, 6}});
  CHECK(y.shape() == x.shape());
  for (index_t h = 0; h < 5; ++h)
    for (index_t w = 0; w < 6; ++w) CHECK(y(1, 1, h, w) == (h % 2 == 1 && w % 3 == 1 ? x(1, 1, h, w) : 0));
  CHECK(max_unpool2d(values, indices, 2, {.stride = {2, 3}, .output_size = {4, 6}}).shape() ==
        extents<4>{{2, 2, 4, 6}});
  const auto [line, places] = max_pool1d_with_indices(x[0], 3, {.stride = 1});
  const tensor back = max_unpool1d(line, cast<int>(places), 3, {.stride = 1});
  CHECK(same_bits(back, eval(where(arange<int>(6) >= 2, x[0], 0))));
  const auto [block, at] = max_pool3d_with_indices(x.unsqueeze(0), {2, 5, 3});
  CHECK(max_unpool3d(block, at, {2, 5, 3}).shape() == extents<5>{{1, 2, 2, 5, 6}});
  CHECK(sum(max_unpool3d(block, at, {2, 5, 3})).item() == sum(block).item());
  CHECK(max_unpool1d(zeros<float>({0, 2, 3}), zeros<int>({0, 2, 3}), 2).shape() == extents<3>{{0, 2, 6}});
  std::mt19937 gen(1);
  const auto v = differences::random(gen, {1, 2, 2, 3});
  const tensor<int, 4> where_to = cast<int>(remainder(arange<std::int64_t>(12).reshape({1, 2, 2, 3}), 6) * 4);
  differences::check([&](const auto& a) { return max_unpool2d(a * 2, where_to, 2); }, 12, v);

  const tensor<int, 4> first = zeros<int>(values.shape());
  CHECK_THROWS_WITH(max_unpool2d(values, first[0].unsqueeze(0), 2),
                    "max_unpool2d: indices of shape (1, 2, 2, 2) for x of shape (2, 2, 2, 2)");
  CHECK_THROWS_WITH(max_unpool2d(values, first, 2, {.output_size = {4, 6}}),
                    "max_unpool2d: a result of 6 elements on axis 3; 2 windows come from 3 to 5");
  CHECK_THROWS_WITH(max_unpool2d(values, first + 16, 2),
                    "max_unpool2d: index 16 at position 0 is out of range [0, 16)");
  CHECK_THROWS_WITH(max_unpool2d(values, first, 0), "max_unpool2d: the kernel is 0; it must be 1 or more");
  CHECK_THROWS_WITH(max_unpool2d(values, first, 2, {.padding = -1}),
                    "max_unpool2d: padding is -1; it must not be negative");
}
