// tests/grad/differences.hpp: gradients against central differences in float64.
#pragma once

#include "../catch.hpp"

#include <sinter/sinter.hpp>

#include <cmath>
#include <random>
#include <vector>

namespace differences {

using sinter::index_t;

template <int R>
sinter::tensor<double, R> random(std::mt19937& gen, const sinter::extents<R>& shape, double low = -1, double high = 1) {
  auto t = sinter::empty<double>(shape);
  std::uniform_real_distribution<double> pick(low, high);
  for (double& v : t) v = pick(gen);
  return t;
}
template <std::size_t R>
sinter::tensor<double, int{R}> random(std::mt19937& gen, const index_t (&shape)[R], double low = -1, double high = 1) {
  return random(gen, sinter::detail::to_extents(shape), low, high);
}

/// The scalar that is differentiated: the results of f weighted so that no two elements count alike.
template <class Y>
double weighted(const Y& y) {
  const auto dense = y.contiguous();
  double total = 0;
  index_t i = 0;
  for (double v : dense) total += v * std::cos(0.7 * static_cast<double>(i++));
  return total;
}
template <int R>
sinter::tensor<double, R> weights(const sinter::extents<R>& shape) {
  auto t = sinter::empty<double>(shape);
  index_t i = 0;
  for (double& v : t) v = std::cos(0.7 * static_cast<double>(i++));
  return t;
}

/// Checks the gradients of f(variables...) at up to `probes` elements of each operand.
template <class F, int... R>
void check(const F& f, int probes, const sinter::tensor<double, R>&... at) {
  auto variables = std::make_tuple(sinter::variable<double, R>(at)...);
  std::apply(
      [&](const auto&... v) {
        const sinter::variable y = f(v...);
        y.backward(weights(y.shape()));
        const auto value = [&] {
          const sinter::no_grad guard;
          const sinter::variable again = f(v...);
          return weighted(again.value());
        };
        int number = 0;
        const auto probe = [&](const auto& x) {
          ++number;
          const auto values = x.value();
          const auto grad = x.grad();
          REQUIRE(grad.shape() == x.shape());
          const index_t n = values.numel(), step = n / probes + 1;
          for (index_t i = 0; i < n; i += step) {
            double& e = values.data()[i];
            const double old = e, h = 1e-5;
            e = old + h;
            const double up = value();
            e = old - h;
            const double down = value();
            e = old;
            INFO("operand " << number << " element " << i);
            CHECK(grad.data()[i] == Approx((up - down) / (2 * h)).epsilon(2e-6).margin(2e-7 * (1 + std::abs(up))));
          }
        };
        (probe(v), ...);
      },
      variables);
}

}  // namespace differences
