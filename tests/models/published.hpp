// tests/models/published.hpp: what the tests of networks with published weights share.
#pragma once

#include <sinter/sinter.hpp>
#include "../catch.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <string>
#include <utility>

namespace published {

/// What examples/reference gave to PyTorch's networks of 61 words.
inline sinter::tensor<std::int64_t, 2> tokens() {
  const auto ids = sinter::zeros<std::int64_t>({2, 20});
  for (sinter::index_t n = 0; n < 2; ++n)
    for (sinter::index_t t = 0; t < 20; ++t) ids(n, t) = (t * (t + 3) + 5 * n) % 61;
  return ids;
}

template <class A, class B>
double distance(const A& a, const B& b) {
  return static_cast<double>(max(abs(a - b)).item());
}

/// The gradients of a network beside those in a file: a line for each parameter, its name, the norm of its gradient and
/// the sum of it times a ramp from 0 to 1.
template <class Network>
void check_gradients(const Network& network, const std::string& path) {
  std::map<std::string, std::pair<double, double>> wanted;
  std::ifstream lines(path);
  double norm_of = 0, placed = 0, largest = 0;
  for (std::string name; lines >> name >> norm_of >> placed;) {
    wanted[name] = {norm_of, placed};
    largest = std::max(largest, norm_of);
  }
  std::size_t compared = 0;
  network.for_each_parameter([&](const std::string& name, const auto& p) {
    INFO(path << ": " << name);
    REQUIRE(wanted.count(name) == 1);
    const sinter::tensor g = sinter::eval(sinter::cast<double>(p.grad())).flatten();
    const sinter::tensor ramp =
        sinter::eval(sinter::arange<double>(g.extent(0)) / static_cast<double>(g.extent(0) - 1));
    // The bias of keys moves all scores of a query alike: its gradient is what rounding leaves of others.
    const double least = 1e-5 * (wanted[name].first + 0.05 * largest);
    CHECK(std::abs(norm(g).item() - wanted[name].first) < least);
    CHECK(std::abs(sum(g * ramp).item() - wanted[name].second) < least);
    ++compared;
  });
  CHECK(compared == wanted.size());
}

}  // namespace published
