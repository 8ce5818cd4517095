// tests/gpu/folds_by_cub_test.cu: reductions, scans and counts by CUB on a GPU, against the CPU. That they are CUB's is
// seen in the launches, where Sinter's would be two: it cuts what is long.
#define SINTER_WITH_CUB_FOLDS 1
#include "../cuda/compare.hpp"

namespace compare {

using namespace sinter;
using g0 = sinter::cuda<0>;

/// f on the CPU and by one launch on the GPU.
template <class F, class... T>
double by_one_launch(const F& f, const T&... at) {
  const sinter::tensor expected = f(at...);
  return [&](const auto&... there) {
    const auto before = launches<g0>();
    const sinter::tensor got = f(there...);
    CHECK(launches<g0>() == before + 1);
    return distance(got, expected);
  }(at.template to<g0>()...);
}

TEST_CASE("whole tensors are folded by CUB, with what comes before and after", "[cuda]") {
  for (const index_t n : {1, 31, 257, 4099, 300'007}) {
    const auto x = numbers({n}, 1);
    CHECK(by_one_launch([](const auto& v) { return eval(exp(sum(v * 2 + 1) * 1e-6) * v.select(0, 0) + 1); }, x) < 1e-5);
    CHECK(by_one_launch([](const auto& v) { return eval(argmax(v)); }, x) <= rounding);
    CHECK(by_one_launch([](const auto& v) { return eval(sum(v)); }, numbers<std::int8_t>({n}, 3)) <= rounding);
    CHECK(by_one_launch([](const auto& v) { return eval(all(v > -20)); }, x) <= rounding);
  }
  const auto y = numbers({40, 50, 60}, 2), column = numbers({1, 50, 1}, 3);
  CHECK(by_one_launch([](const auto& v, const auto& c) { return eval(logsumexp(v.transpose(0, 2) * c)); }, y, column) <
        1e-5);
  auto flat = zeros<float>({20'000});
  CHECK(eval(argmax(flat.to<g0>())).item() == 0);
  flat(10'000) = std::nanf("");
  flat(19'999) = std::nanf("");
  CHECK(eval(argmax(flat.to<g0>())).item() == 10'000);
}

TEST_CASE("rows are folded by CUB where they are long and many", "[cuda]") {
  for (const index_t rows : {63, 64, 65})
    for (const index_t n : {255, 256, 257, 1500}) {
      auto x = numbers({rows, n}, 1);
      x(5, 7) = std::nanf("");
      for (index_t i = 0; i < n; ++i) x(6, i) = 3;
      CHECK(values([](const auto& v) { return eval(mean(abs(v), 1) * 3 + v.select(1, 2)); }, x) < 1e-5);
      CHECK(values([](const auto& v) { return argmin(v.slice(0, 2, v.shape()[0]), 1); }, x) <= rounding);
    }
  const auto wide = numbers({64, 20'000}, 2);
  CHECK(values([](const auto& v) { return max(eval(cast<sinter::half>(v)), 1); }, wide) <= rounding);
  CHECK(by_one_launch([](const auto& v) { return eval(sum(cast<double>(v), 1)); }, wide) < 1e-12);
  CHECK(compare::gradients([](const auto& v) { return eval(mean(v * v, 1)); }, numbers({64, 300}, 2)) < 1e-5);
}

TEST_CASE("scans that can be cut anywhere are CUB's", "[cuda]") {
  for (const index_t n : {1, 1025, 70'001}) {
    CHECK(by_one_launch([](const auto& v) { return cumsum(v, 0); }, numbers<std::int32_t>({n}, 1)) <= rounding);
    CHECK(values([](const auto& v) { return eval(cumsum(v * 3, 0) + 1); }, numbers<std::int32_t>({n}, 1)) <= rounding);
  }
  for (const index_t n : {255, 256, 1300}) {
    auto x = numbers({70, n}, 2);
    x(3, 200) = std::nanf("");
    for (index_t i = 0; i < n; ++i) x(6, i) = 3;
    CHECK(values([](const auto& v) { return cummax(v, 1).indices; }, x) <= rounding);
    CHECK(values([](const auto& v) { return cummax(v, 1).values; }, x) <= rounding);
  }
}

TEST_CASE("counts are CUB's in few bins, and need little memory in many", "[cuda]") {
  const auto x = numbers({12'345}, 1);
  for (const index_t bins : {1, 10, 255, 256, 257, 5000})
    CHECK(values([&](const auto& v) { return histc(v * 2, bins, -5, 6); }, x) <= rounding);
  const auto classes = eval(cast<std::int32_t>(abs(x) * 20));
  CHECK(values([](const auto& v) { return bincount(v, 7); }, classes) <= rounding);
  CHECK(values([](const auto& v) { return unique(v).counts; }, classes) <= rounding);
  reset_peak_memory<g0>();
  const auto before = memory<g0>().bytes_in_use;
  const auto counts = bincount(arange<std::int32_t, g0>(100'000));
  CHECK(memory<g0>().peak_bytes < before + 4'000'000);
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
