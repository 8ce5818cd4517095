// sinter/optim/clip.hpp: bounds on gradients before a step.
#pragma once

#include <functional>
#include <vector>

#include "sinter/ops/cast.hpp"
#include "sinter/ops/clamp.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/ops/sum.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

/// Scales all gradients of a module, variable or range so that their norm over all elements is at most max_norm, and
/// returns the norm before. As torch.nn.utils.clip_grad_norm_, the factor is max_norm / (norm + 1e-6).
template <class Source>
double clip_grad_norm(const Source& source, double max_norm) {
  if (!(max_norm >= 0))
    sinter::detail::refuse<value_error>({"clip_grad_norm: max_norm must not be negative, but is ", max_norm});
  std::vector<std::function<double()>> sums;  // all are started before the first one is waited for
  detail::for_each_variable(source, [&sums](const std::string&, const auto& v) {
    using T = compute_type<element_of<decltype(v)>>;  // squares of half soon exceed it
    if (v.has_grad()) sums.push_back([of_one = eval(sum(square(cast<T>(v.grad().flatten()))))] { return static_cast<double>(of_one.item()); });
  });
  double squares = 0;
  for (const auto& of_one : sums) squares += of_one();
  const double norm = std::sqrt(squares);
  const double factor = max_norm / (norm + 1e-6);
  if (!(factor >= 1))
    detail::for_each_variable(source, [factor](const std::string&, const auto& v) {
      if (!v.has_grad()) return;
      auto g = v.grad().flatten();
      g *= factor;
    });
  return norm;
}

/// Clamps every element of the gradients to [-limit, limit].
template <class Source>
void clip_grad_value(const Source& source, double limit) {
  if (!(limit >= 0))
    sinter::detail::refuse<value_error>({"clip_grad_value: the limit must not be negative, but is ", limit});
  detail::for_each_variable(source, [limit](const std::string&, const auto& v) {
    if (!v.has_grad()) return;
    auto g = v.grad().flatten();
    std::move(g) = clamp(g, -limit, limit);  // through the handle, into the gradient
  });
}

}  // namespace sinter::optim
