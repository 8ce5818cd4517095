// tests/cuda/pooling_test.cpp: what the table of kernel ops does not show of pooling on a GPU: indices, ties, NaN.
#include "compare.hpp"

#include <limits>
#include <vector>

using namespace sinter;

namespace {

template <class T, int R, device D>
std::vector<double> values_of(const tensor<T, R, D>& x) {
  const auto host = x.template to<cpu>().contiguous();
  return {host.begin(), host.end()};
}

/// The indices of f(x), on the CPU and on cuda<0>.
template <class F, class T, int R>
void check_indices(const F& f, const tensor<T, R>& x) {
  const auto here = f(x);
  const auto there = f(x.template to<cuda<0>>());
  CHECK(values_of(there.indices) == values_of(here.indices));
  CHECK(compare::distance(there.values, here.values) == 0);
}

}  // namespace

TEST_CASE("max pooling on a GPU tells where the elements stand", "[cuda]") {
  const auto x = compare::numbers({2, 3, 18, 17});
  check_indices([](const auto& v) { return max_pool2d_with_indices(v, 3, {.stride = 2, .padding = 1}); }, x);
  check_indices([](const auto& v) { return max_pool2d_with_indices(v, {17, 16}, {.stride = 1}); }, x);
  check_indices([](const auto& v) { return adaptive_max_pool2d_with_indices(v, {4, 5}); }, x);
  check_indices([](const auto& v) { return max_pool3d_with_indices(v, {1, 2, 2}, {.ceil_mode = true}); },
                compare::numbers<sinter::half>({1, 2, 3, 5, 4}));
  check_indices([](const auto& v) { return max_pool1d_with_indices(v, 2, {.stride = 1, .padding = 1, .dilation = 3}); },
                tensor<double, 3>{{{4, 6}}});  // whose taps all miss
}

TEST_CASE("max pooling on a GPU takes the first of equal elements, and NaN where there is one", "[cuda]") {
  constexpr float none = std::numeric_limits<float>::quiet_NaN(), least = -std::numeric_limits<float>::infinity();
  const tensor<float, 3> x = {{{1, 3, 3, 2, least, least, none, 5, 4, none}}};
  check_indices([](const auto& v) { return max_pool1d_with_indices(v, 2); }, x);
  check_indices([](const auto& v) { return max_pool1d_with_indices(v, 5); }, x);
}
