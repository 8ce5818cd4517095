// tests/cuda/compare.hpp: the same work on the CPU and on a GPU: a simulated one, or, compiled by nvcc, a real one.
#pragma once

#include "../catch.hpp"

#include <sinter/sinter.hpp>

#if !SINTER_WITH_CUDA
#include "simulator.hpp"
#endif

#include <cmath>
#include <vector>

namespace compare {

using sinter::device;
using sinter::index_t;

/// How far results of a few operations may lie apart: a GPU rounds a * b + c once.
inline constexpr double rounding = SINTER_WITH_CUDA ? 1e-6 : 0;

template <class T = float, int R>
sinter::tensor<T, R> numbers(const sinter::extents<R>& shape, int seed = 1) {
  sinter::generator gen(static_cast<std::uint64_t>(seed));
  return sinter::eval(sinter::cast<T>(sinter::randn<double>(gen, shape) * 3));
}
template <class T = float, std::size_t R>
sinter::tensor<T, int{R}> numbers(const index_t (&shape)[R], int seed = 1) {
  return numbers<T>(sinter::detail::to_extents(shape), seed);
}

/// Largest distance, relative to 1 and the values.
template <class T, int R, device D>
double distance(const sinter::tensor<T, R, D>& got, const sinter::tensor<T, R>& expected) {
  const sinter::tensor<T, R> host = got.template to<sinter::cpu>().contiguous(), right = expected.contiguous();
  REQUIRE(host.shape() == right.shape());
  double worst = 0;
  auto at = right.begin();
  for (const T x : host) {
    const double a = static_cast<double>(x), b = static_cast<double>(*at++);
    if (std::isnan(a) != std::isnan(b)) return 1e300;
    if (!(a == b) && !std::isnan(a)) worst = std::fmax(worst, std::abs(a - b) / std::fmax(1, std::abs(b)));
  }
  return worst;
}

/// f on the CPU and on cuda<0>, from the same values.
template <class F, class... T>
double values(const F& f, const T&... at) {
  const sinter::tensor expected = f(at...);
  const sinter::tensor got = f(at.template to<sinter::cuda<0>>()...);
  return distance(got, expected);
}

/// The gradients of f in each operand, gathered over two passes.
template <class F, class... T>
double gradients(const F& f, const T&... at) {
  double worst = 0;
  const auto host = std::make_tuple(sinter::variable(at.clone())...);
  const auto there = std::make_tuple(sinter::variable(at.template to<sinter::cuda<0>>())...);
  const auto backward = [&](const auto& v) {
    for (int i = 0; i < 2; ++i) {
      const sinter::variable y = std::apply(f, v);
      y.backward(ones_like(y.value()));
    }
  };
  backward(host);
  backward(there);
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((worst = std::fmax(worst, distance(std::get<I>(there).grad(), std::get<I>(host).grad()))), ...);
  }(std::index_sequence_for<T...>{});
  return worst;
}

}  // namespace compare
