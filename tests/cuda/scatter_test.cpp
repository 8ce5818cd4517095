// tests/cuda/scatter_test.cpp: elements written and found by indices, on a GPU.
#include "compare.hpp"

using namespace sinter;

namespace {

template <class F, class... T>
void check(const F& f, const T&... at) {
  CHECK(compare::values(f, at...) <= 1e-5);
  CHECK(compare::gradients(f, at...) <= 1e-5);
}
/// Indices on the device of x.
template <class X, int R>
tensor<int, R, device_of<X>> beside(const tensor<int, R>& index, const X&) {
  return index.template to<device_of<X>>();
}

}  // namespace

TEST_CASE("scatters on a GPU", "[cuda]") {
  const tensor x = compare::numbers({4, 6}), src = compare::numbers({5, 6}, 2);
  const tensor<int, 2> index = cast<int>(remainder(arange<std::int64_t>(30).reshape({5, 6}) * 7, 4));
  check([&](const auto& a, const auto& b) { return scatter(a * 1, 0, beside(index, a), b); }, x, src);
  check([&](const auto& a, const auto& b) { return scatter_add(a, 0, beside(index, a), b * 2); }, x, src);
  for (const bool self : {true, false}) {
    const auto reduce = [&](auto how) {
      check([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, beside(index, a), b, how, self); }, x, src);
    };
    reduce(reduction::mean);
    reduce(reduction::prod);
    reduce(reduction::max);
    reduce(reduction::min);
  }
  const tensor<int, 1> rows{3, 0, 3, 1, 1};
  check([&](const auto& a, const auto& b) { return index_add(a, 0, beside(rows, a), b, 0.5); }, x, src);
  check([&](const auto& a) { return index_fill(a, 0, beside(rows, a), 2); }, x);
  CHECK_THROWS_AS(scatter(zeros<float, cuda<0>>({2}), 0, tensor<int, 1>{2}.to<cuda<0>>(), 1).template to<cpu>(),
                  index_error);
}

TEST_CASE("few long lines are written in order of their indices on a GPU, with the same results", "[cuda]") {
  const tensor x = compare::numbers({7, 3}), src = compare::numbers({3000, 3}, 2) * 0.03 + 1;
  const tensor<int, 1> rows = cast<int>(remainder(arange<std::int64_t>(3000) * 5, 7));
  const tensor<int, 2> index = cast<int>(remainder(arange<std::int64_t>(9000).reshape({3000, 3}) * 4, 7));
  const auto same = [&](const auto& f) {
    CHECK(compare::values(f, x, src) <= compare::rounding);
    CHECK(compare::gradients(f, x, src) <= 1e-6);
  };
  same([&](const auto& a, const auto& b) { return index_add(a, 0, beside(rows, a), b); });
  same([&](const auto& a, const auto& b) { return scatter_add(a, 0, beside(index, a), b); });
  same([&](const auto& a, const auto& b) { return scatter(a, 0, beside(index, a), b); });
  same([&](const auto& a, const auto& b) { return scatter_reduce(a, 0, beside(index, a), b, reduction::max); });
  same([&](const auto& a, const auto& b) { return index_reduce(a, 0, beside(rows, a), sigmoid(b), reduction::prod); });
  same([&](const auto& a, const auto& b) { return gather(a * b.slice(0, 0, 7), 0, beside(index, a).slice(0, 0, 7)); });
}

TEST_CASE("max_unpool on a GPU", "[cuda]") {
  const tensor x = compare::numbers({2, 3, 5, 6});
  check(
      [](const auto& a) {
        const auto [values, indices] = max_pool2d_with_indices(a, 2, {.stride = 1});
        return max_unpool2d(values, indices, 2, {.stride = 1});
      },
      x);
}

TEST_CASE("places among sorted elements, of true elements, and at coordinates on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6}), sorted = sort(compare::numbers({5, 4}, 2), 1).values;
  const auto same = [&](const auto& f) { CHECK(compare::values(f, x) == 0); };
  same([&](const auto& a) { return eval(searchsorted(sorted.template to<device_of<decltype(a)>>(), a, true)); });
  same([&](const auto& a) { return eval(bucketize(a, sorted[0].template to<device_of<decltype(a)>>())); });
  same([](const auto& a) { return isin(a, a[2]); });
  same([](const auto& a) { return nonzero(a > 0); });
  same([](const auto& a) { return nonzero(a > 1000); });
  same([](const auto& a) { return one_hot(cast<int>(abs(a)), 40); });
  check([](const auto& a) { return masked_select(a * 2, (a > 0)); }, x);
  check([](const auto& a) { return masked_select(a, 1, (a[0] > 0)); }, x);
  check([](const auto& a, const auto& b) { return masked_scatter(a, (a > 1), b); }, x, eval(x * 2));
  const tensor<int, 1> i{0, -1, 2}, j{1, 5, -3};
  check([&](const auto& a) { return index_get(a, {beside(i, a), beside(j, a)}); }, x);
  check([&](const auto& a) { return take(a, beside(j, a)); }, x);
  check([&](const auto& a) { return index_put(a, {beside(i, a), beside(j, a)}, 4, reduction::sum); }, x);
  CHECK_THROWS_AS(take(x.to<cuda<0>>(), tensor<int, 1>{30}.to<cuda<0>>()).template to<cpu>(), index_error);
}
