// sinter/optim/sgd.hpp: stochastic gradient descent with momentum.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/expr/fuse.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct sgd_options {
  double lr = 0.001;
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
};

namespace detail {

struct sgd_rule {
  using options = sgd_options;
  static void check(const options& o) {
    check_setting("sgd", "momentum", o.momentum);
    check_setting("sgd", "weight_decay", o.weight_decay);
    if (!std::isfinite(o.dampening)) throw value_error("sgd: dampening must be finite");
    if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
      throw value_error("sgd: Nesterov's momentum needs a momentum above 0 and no dampening");
  }

  template <class T, device D>
  struct state {
    tensor<T, 1, D> momentum;

    void update(tensor<T, 1, D> p, const tensor<T, 1, D>& gradient, const options& o, double lr) {
      const auto g = gradient + o.weight_decay * p;
      if (o.momentum == 0) {
        p -= lr * g;
        return;
      }
      const bool first = !momentum.defined();
      if (first) momentum = zeros<T, D>(p.shape());
      const auto m = o.momentum * momentum + (first ? 1 : 1 - o.dampening) * g;
      fuse(momentum = m, p -= lr * ((o.nesterov ? 1.0 : 0.0) * g + (o.nesterov ? o.momentum : 1.0) * m));
    }
  };
};

}  // namespace detail

/// p -= lr d with, as in torch.optim.SGD: g = gradient + weight_decay p; without momentum d = g; with it
/// m = momentum m + (1 - dampening) g (m = g at first), d = m, or g + momentum m for Nesterov's.
///
///     optim::sgd optimizer(model, {.lr = 0.1, .momentum = 0.9});
class sgd : public rule_optimizer<detail::sgd_rule> {
 public:
  using rule_optimizer::rule_optimizer;
};

}  // namespace sinter::optim
