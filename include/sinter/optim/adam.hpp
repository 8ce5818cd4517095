// sinter/optim/adam.hpp: Adam and AdamW.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/expr/fuse.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/square.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct adam_options {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

struct adamw_options {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
};

namespace detail {

/// Adam adds weight_decay p to the gradient, AdamW shrinks p itself. Both are one formula, so one kernel.
template <class Options, bool Decoupled>
struct adam_rule {
  using options = Options;
  static void check(const options& o) {
    const char* const name = Decoupled ? "adamw" : "adam";
    check_setting(name, "beta1", o.beta1, 1);
    check_setting(name, "beta2", o.beta2, 1);
    check_setting(name, "eps", o.eps);
    check_setting(name, "weight_decay", o.weight_decay);
  }

  template <class T, device D>
  struct state {
    tensor<T, 1, D> m, v;
    double power1 = 1, power2 = 1;  // beta1^t, beta2^t

    void update(const tensor<T, 1, D>& p, const tensor<T, 1, D>& gradient, const options& o, double lr) {
      if (!m.defined()) {
        m = zeros<T, D>(p.shape());
        v = zeros<T, D>(p.shape());
      }
      power1 *= o.beta1;
      power2 *= o.beta2;
      apply(p, gradient, o.beta1, o.beta2, o.eps, Decoupled ? 0 : o.weight_decay, Decoupled ? 1 - lr * o.weight_decay : 1, lr / (1 - power1),
            1 / std::sqrt(1 - power2));
    }

    void apply(tensor<T, 1, D> p, const tensor<T, 1, D>& gradient, double beta1, double beta2, double eps, double added_decay, double kept,
               double rate, double scale) {
      const auto g = gradient + added_decay * p;
      const auto next_m = beta1 * m + (1 - beta1) * g;
      const auto next_v = beta2 * v + (1 - beta2) * square(g);
      fuse(m = next_m, v = next_v, tensor<T, 1, D>(p) = kept * p - rate * next_m / (scale * sqrt(next_v) + eps));
    }
  };
};

}  // namespace detail

/// As torch.optim.Adam: g = gradient + weight_decay p, m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// p -= lr m' / (sqrt(v') + eps) with m' = m / (1 - beta1^t), v' = v / (1 - beta2^t).
/// D. P. Kingma and J. Ba, ICLR 2015.
///
///     optim::adam optimizer(model, {.lr = 1e-3});
class adam : public rule_optimizer<detail::adam_rule<adam_options, false>> {
 public:
  using rule_optimizer::rule_optimizer;
};

/// As torch.optim.AdamW: Adam without decay in the gradient, after p *= 1 - lr weight_decay.
/// I. Loshchilov and F. Hutter, ICLR 2019.
class adamw : public rule_optimizer<detail::adam_rule<adamw_options, true>> {
 public:
  using rule_optimizer::rule_optimizer;
};

}  // namespace sinter::optim
