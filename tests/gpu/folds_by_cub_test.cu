// tests/gpu/folds_by_cub_test.cu: reductions, scans and counts by CUB on a GPU, against the CPU.
#define SINTER_WITH_CUB_FOLDS 1
#include "../cuda/compare.hpp"

namespace compare {

using namespace sinter;
using g0 = sinter::cuda<0>;

TEST_CASE("whole tensors are folded by CUB, with what comes before and after", "[cuda]") {
  for (const index_t n : {1, 31, 257, 4099, 300'007}) {
    const auto x = numbers({n}, 1);
    CHECK(values([](const auto& v) { return eval(exp(sum(v * 2 + 1) * 1e-6) + 1); }, x) < 1e-5);
    CHECK(values([](const auto& v) { return eval(argmax(v)); }, x) <= rounding);
  }
  const auto y = numbers({40, 50, 60}, 2), column = numbers({1, 50, 1}, 3);
  CHECK(values([](const auto& v, const auto& c) { return eval(logsumexp(v.transpose(0, 2) * c)); }, y, column) < 1e-5);
  auto flat = zeros<float>({20'000});
  CHECK(eval(argmax(flat.to<g0>())).item() == 0);
  flat(10'000) = std::nanf("");
  flat(19'999) = std::nanf("");
  CHECK(eval(argmax(flat.to<g0>())).item() == 10'000);
}

TEST_CASE("rows are folded by CUB where they are long and many", "[cuda]") {
  for (const index_t n : {255, 256, 257, 1500}) {
    const auto x = numbers({70, n}, 1);
    CHECK(values([](const auto& v) { return eval(mean(abs(v), 1) * 3); }, x) < 1e-5);
    CHECK(values([](const auto& v) { return argmin(v.slice(0, 2, 70), 1); }, x) <= rounding);
  }
  CHECK(gradients([](const auto& v) { return eval(mean(v * v, 1)); }, numbers({64, 300}, 2)) < 1e-5);
}

TEST_CASE("scans that can be cut anywhere are CUB's", "[cuda]") {
  for (const index_t n : {1, 7, 1025, 70'001}) {
    CHECK(values([](const auto& v) { return eval(cumsum(v * 3, 0) + 1); }, numbers<std::int32_t>({n}, 1)) <= rounding);
    CHECK(values([](const auto& v) { return cummax(v.reshape({7, v.numel() / 7}), 1).indices; }, numbers({7 * n}, 2)) <= rounding);
  }
}

TEST_CASE("counts are CUB's, in few bins and in many", "[cuda]") {
  const auto x = numbers({12'345}, 1);
  for (const index_t bins : {1, 10, 255, 256, 257, 5000}) CHECK(values([&](const auto& v) { return histc(v * 2, bins, -5, 6); }, x) <= rounding);
}

TEST_CASE("a captured step may hold folds by CUB", "[cuda]") {
  const auto x = numbers({50'000}, 1).to<g0>();
  auto in = zeros<float, g0>({50'000});
  auto total = zeros<float, g0>();
  const auto step = capture<g0>([&] { total = sum(in * 2) + 1; });
  CHECK(step.kernels() == 1);
  for (int i = 1; i < 4; ++i) {
    in = x * static_cast<float>(i);
    step.replay();
    CHECK(distance(total, eval(sum(in.to<cpu>() * 2) + 1)) < 1e-5);
  }
}

}  // namespace compare
