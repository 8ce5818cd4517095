// tests/cuda/arrange_test.cpp: functions that are made of views and other ops, on a GPU.
#include "compare.hpp"

using namespace sinter;

namespace {

template <class F, class... T>
void check(const F& f, const T&... at) {
  CHECK(compare::values(f, at...) <= 1e-5);
  CHECK(compare::gradients(f, at...) <= 1e-5);
}

}  // namespace

TEST_CASE("parts, copies, moved slices, diagonals and triangles on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6});
  check([](const auto& t) { return eval(split(t, {2, 3})[1] * 2); }, x);
  check([](const auto& t) { return eval(unbind(t, 1)[4] * 2); }, x);
  check([](const auto& t) { return repeat(t, {2, 1, 3}); }, x);
  check([](const auto& t) { return repeat_interleave(t, 3, 0); }, x);
  check([](const auto& t) { return roll(t, -2, 1); }, x);
  check([](const auto& t) { return roll(t, 7); }, x);
  check([](const auto& t) { return eval(diagonal(t, 1) * 2); }, x);
  check([](const auto& t) { return diag_embed(t, -2); }, x);
  check([](const auto& t) { return tril(t, 1); }, x);
  check([](const auto& t) { return triu(t * 2, -1); }, x);
  check([](const auto& t) { return diff(t, 2); }, x);
  CHECK(compare::distance(linspace<float, cuda<0>>(-1, 1, 9), linspace<float>(-1, 1, 9)) == 0);
  CHECK(compare::distance(eye<float, cuda<0>>(3, 5), eye<float>(3, 5)) == 0);
}

TEST_CASE("reductions and losses that are formulas on a GPU", "[cuda]") {
  const tensor x = compare::numbers({5, 6}), y = compare::numbers({5, 6}, 2);
  CHECK(compare::values([](const auto& t) { return eval(count_nonzero(t, 1)); }, x) == 0);
  check([](const auto& t) { return eval(nanmean(t, 0)); }, x);
  check([](const auto& t) { return eval(stddev(t, 1)); }, x);
  check([](const auto& a, const auto& b) { return eval(addcmul(a, a, b, 0.5)); }, x, y);
  check([](const auto& a, const auto& b) { return eval(huber_loss(a, b)); }, x, y);
  check([](const auto& a, const auto& b) { return eval(smooth_l1_loss(a, b, 0.5, reduction::none)); }, x, y);
  check([](const auto& a, const auto& b) { return eval(soft_margin_loss(a, b)); }, x, y);
  check([](const auto& a, const auto& b) { return eval(kl_div(a, abs(b), reduction::sum)); }, x, y);
  check([](const auto& a, const auto& b) { return poisson_nll_loss(a, abs(b), {.full = true}); }, x, y);
  check([](const auto& a, const auto& b) { return eval(binary_cross_entropy(sigmoid(a), sigmoid(b))); }, x, y);
  CHECK(allclose(x.to<cuda<0>>(), x.to<cuda<0>>()));
}
