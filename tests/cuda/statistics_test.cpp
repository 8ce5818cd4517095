// tests/cuda/statistics_test.cpp: places of the order, norms, distances and spreads on a GPU.
#include "compare.hpp"

using namespace sinter;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <class F, class... T>
void check(const F& f, const T&... at) {
  CHECK(compare::values(f, at...) <= 1e-5);
  CHECK(compare::gradients(f, at...) <= 1e-5);
}

}  // namespace

TEST_CASE("quantiles, medians, the k-th element and the mode on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6});
  check([](const auto& t) { return quantile(t, 0.3, 1); }, x);
  check([](const auto& t) { return nanquantile(t, sigmoid(t.select(0, 1)), 0, keepdim); }, x);
  check([](const auto& t) { return median(t); }, x);
  check([](const auto& t) { return nanmedian(t, 0).values; }, x);
  check([](const auto& t) { return kthvalue(t, 2, 1, keepdim).values; }, x);
  check([](const auto& t) { return mode(t, 1).values; }, x);
  CHECK_THROWS_WITH(quantile(x.to<cuda<0>>(), 2), "quantile: q is 2; it must lie in [0, 1]");
}

TEST_CASE("norms and distances on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6});
  const tensor y = compare::numbers({4, 6}, 2);
  for (const double p : {0., 1., 2., 3., -1., infinity}) check([p](const auto& t) { return vector_norm(t, p, 1); }, x);
  check([](const auto& t) { return matrix_norm(t, 1); }, x);
  check([](const auto& t) { return normalize(t); }, x);
  check([](const auto& a, const auto& b) { return cdist(a, b, {.p = 1}); }, x, y);
  check([](const auto& a, const auto& b) { return cdist(a, b, {.way = distance_way::product}); }, x, y);
  check([](const auto& t) { return pdist(t, 3); }, x);
  check([](const auto& a, const auto& b) { return cosine_similarity(a.slice(0, 0, 4), b); }, x, y);
  check([](const auto& a, const auto& b) { return eval(vecdot(a.slice(0, 0, 4), b)); }, x, y);
  check([](const auto& t) { return local_response_norm(t.unsqueeze(2), 3); }, x);
}

TEST_CASE("spreads and other forms of reductions on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6});
  check([](const auto& t) { return eval(var(t, 0, {.correction = 0})); }, x);
  check([](const auto& t) { return std_mean(t, 1, keepdim).spread; }, x);
  check([](const auto& t) { return corrcoef(t); }, x);
  check([](const auto& t) { return aminmax(t, 1).max; }, x);
  check([](const auto& t) { return sum_to_size(t, {1, 6}); }, x);
  check([](const auto& t) { return cumprod(t, 1, {.exclusive = true, .reverse = true}); }, x);
  check([](const auto& t) { return eval(softmin(t, 1)); }, x);
  check([](const auto& t) { return eval(masked_softmax(t, eval(t.select(0, 0) > 0), 1)); }, x);
  CHECK(compare::values([](const auto& t) { return hardmax(t, 0); }, x) == 0);
  CHECK(compare::values([](const auto& t) { return argmin(t, 1, {.select_last = true}); }, x) == 0);
  check([](const auto& t) { return eval(sum(sort(t.select(0, 1).select(0, 2)).values, 0)); }, x);
}
