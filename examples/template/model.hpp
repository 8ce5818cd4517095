// model.hpp: the network, and points of two spirals to train it on.
#pragma once

#include <sinter/sinter.hpp>

#include <utility>

using namespace sinter;

/// Two hidden layers: points (N,2) => scores (N,2). Its device and whether it is trained are part of its type, so that
/// infer(model) is the same network over plain tensors.
template <device D = cpu, class Kind = nn::tracked>
struct spiral_net : nn::module<spiral_net<D, Kind>> {
  nn::linear<float, D, Kind> first, second, last;

  spiral_net() = default;
  spiral_net(index_t width, generator& gen) : first(2, width, gen), second(width, width, gen), last(width, 2, gen) {}

  auto forward(const auto& x) const { return last(tanh(second(tanh(first(x))))); }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("first", m.first...);
    f("second", m.second...);
    f("last", m.last...);
  }
};

/// Points in the plane (n,2), and to which of two spirals each belongs (n).
inline std::pair<tensor<float, 2>, tensor<std::int64_t, 1>> spirals(index_t n, generator& gen) {
  const tensor arm = randint(gen, 0, 2, {n});
  const tensor radius = sqrt(rand(gen, {n}));
  const tensor angle = 9 * radius + 3.1416f * arm.to<float>();
  const tensor points = stack(1, radius * cos(angle), radius * sin(angle)) + 0.02f * randn(gen, {n, 2});
  return {points, arm};
}
