// sinter/optim/rmsprop.hpp: RMSprop, plain, centred and with momentum.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/expr/fuse.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct rmsprop_options {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
};

namespace detail {

struct rmsprop_rule {
  using options = rmsprop_options;
  static void check(const options& o) {
    check_setting("rmsprop", "alpha", o.alpha);
    check_setting("rmsprop", "eps", o.eps);
    check_setting("rmsprop", "weight_decay", o.weight_decay);
    check_setting("rmsprop", "momentum", o.momentum);
  }

  template <class T, device D>
  struct state {
    tensor<T, 1, D> squares, mean, momentum;

    void update(tensor<T, 1, D> p, const tensor<T, 1, D>& gradient, const options& o, double lr) {
      if (!squares.defined()) {
        squares = zeros<T, D>(p.shape());
        if (o.centered) mean = zeros<T, D>(p.shape());
        if (o.momentum != 0) momentum = zeros<T, D>(p.shape());
      }
      const auto g = gradient + o.weight_decay * p;
      const auto next = o.alpha * squares + (1 - o.alpha) * square(g);
      if (o.centered) {
        const auto next_mean = mean + (1 - o.alpha) * (g - mean);
        const auto d = g / (sqrt(next - square(next_mean)) + o.eps);
        if (o.momentum == 0) fuse(squares = next, mean = next_mean, p -= lr * d);
        else fuse(squares = next, mean = next_mean, momentum = o.momentum * momentum + d, p -= lr * (o.momentum * momentum + d));
      } else {
        const auto d = g / (sqrt(next) + o.eps);
        if (o.momentum == 0) fuse(squares = next, p -= lr * d);
        else fuse(squares = next, momentum = o.momentum * momentum + d, p -= lr * (o.momentum * momentum + d));
      }
    }
  };
};

}  // namespace detail

/// As torch.optim.RMSprop: g = gradient + weight_decay p, v = alpha v + (1 - alpha) g^2, d = g / (sqrt(v) + eps), or
/// centred with v less the square of the running mean of g; p -= lr d, or p -= lr m with m = momentum m + d.
/// G. Hinton, Neural Networks for Machine Learning, lecture 6e (2012).
class rmsprop : public rule_optimizer<detail::rmsprop_rule> {
 public:
  using rule_optimizer::rule_optimizer;
};

}  // namespace sinter::optim
