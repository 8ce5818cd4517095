// tests/kernels/rows.hpp: the table of kernel ops, one row each: the op over its operands, the same in double with
// plain loops, and the operands' shapes. tests/kernels/table_test.cpp and tests/cuda/kernel_table_test.cpp make their
// checks of the rows.
#pragma once

#include <sinter/sinter.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

namespace kernel_table {

using namespace sinter;

template <int R>
using numbers = tensor<double, R>;
using line = std::vector<double>;

/// f(line) in place of every line of x along an axis.
template <int R, class F>
numbers<R> on_lines(const numbers<R>& x, int axis, const F& f) {
  const numbers<R> moved = x.transpose(axis, -1).clone().contiguous();
  const index_t n = moved.shape()[R - 1];
  for (index_t at = 0; at < moved.numel(); at += n) {
    line values(moved.data() + at, moved.data() + at + n);
    f(values);
    std::copy(values.begin(), values.end(), moved.data() + at);
  }
  return moved.transpose(axis, -1).contiguous();
}

inline double sum_of(const line& v) { return std::accumulate(v.begin(), v.end(), 0.0); }
inline double mean_of(const line& v) { return sum_of(v) / static_cast<double>(v.size()); }

inline void softmax_of(line& v) {
  const double most = *std::max_element(v.begin(), v.end());
  for (double& x : v) x = std::exp(x - most);
  const double total = sum_of(v);
  for (double& x : v) x /= total;
}
inline void log_softmax_of(line& v) {
  softmax_of(v);
  for (double& x : v) x = std::log(x);
}
inline void rms_norm_of(line& v, double eps) {
  double squares = 0;
  for (const double x : v) squares += x * x;
  const double scale = 1 / std::sqrt(squares / static_cast<double>(v.size()) + eps);
  for (double& x : v) x *= scale;
}
inline void layer_norm_of(line& v, double eps) {
  const double mean = mean_of(v);
  for (double& x : v) x -= mean;
  rms_norm_of(v, eps);
}

/// The columns that the row of gather reads, on D.
template <device D>
tensor<std::int64_t, 2, D> picks() {
  return tensor<std::int64_t, 2>{{0, 6, 6, 2}, {5, 5, 5, 5}, {3, 0, 1, 6}}.template to<D>();
}

inline numbers<2> gathered(const numbers<2>& x) {
  const auto index = picks<cpu>();
  numbers<2> y = zeros<double>(index.shape());
  for (index_t i = 0; i < 3; ++i)
    for (index_t j = 0; j < 4; ++j) y(i, j) = x(i, index(i, j));
  return y;
}

/// `reference` takes tensors of double.
template <class Formula, class Reference, int... R>
struct row {
  const char* name;
  Formula formula;
  Reference reference;
  std::tuple<extents<R>...> shapes;
};
template <class Formula, class Reference, int... R>
row<Formula, Reference, R...> make_row(const char* name, Formula f, Reference r, extents<R>... shapes) {
  return {name, f, r, {shapes...}};
}
template <class... N>
extents<sizeof...(N)> shape(N... n) {
  return {{static_cast<index_t>(n)...}};
}

// The result type, so that a test can ask whether the op takes its operands.
#define KERNEL_ROW(name, parameters, formula, reference_parameters, reference, ...)                                \
  check(make_row(                                                                                                  \
      name, [] parameters -> decltype(formula) { return formula; }, [] reference_parameters { return reference; }, \
      __VA_ARGS__));

/// check(row) for every row.
template <class Check>
void for_each_row(const Check& check) {
  // clang-format off
  KERNEL_ROW("softmax", (const auto& x), softmax(x, 1), (const numbers<2>& x), on_lines(x, 1, softmax_of), shape(4, 37))
  KERNEL_ROW("softmax along the first axis", (const auto& x), softmax(x, 0), (const numbers<3>& x), on_lines(x, 0, softmax_of), shape(5, 3, 4))
  KERNEL_ROW("log_softmax", (const auto& x), log_softmax(x, -1), (const numbers<2>& x), on_lines(x, 1, log_softmax_of), shape(3, 10))
  KERNEL_ROW("layer_norm", (const auto& x), layer_norm(x, 0.01), (const numbers<2>& x), on_lines(x, 1, [](line& v) { layer_norm_of(v, 0.01); }), shape(4, 37))
  KERNEL_ROW("rms_norm", (const auto& x), rms_norm(x, 0.01), (const numbers<3>& x), on_lines(x, 2, [](line& v) { rms_norm_of(v, 0.01); }), shape(2, 3, 16))
  KERNEL_ROW("gather", (const auto& x), gather(x, 1, picks<device_of<decltype(x)>>()), (const numbers<2>& x), gathered(x), shape(3, 7))
  // clang-format on
}

}  // namespace kernel_table
