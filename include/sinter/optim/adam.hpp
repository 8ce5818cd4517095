// sinter/optim/adam.hpp: Adam and AdamW.
#pragma once

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

template <class T>
struct adam_kernel {
  static constexpr int leaves = 4, outputs = 3;
  using C = compute_type<T>;
  C beta1, beta2, fresh1, fresh2, eps, gradient_scale, added_decay, kept, rate, scale;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto p = m.template load<0, T>();
    const auto g = gradient_scale * m.template load<1, T>() + added_decay * p;
    const auto first = beta1 * m.template load<2, C>() + fresh1 * g;
    const auto second = beta2 * m.template load<3, C>() + fresh2 * (g * g);
    m.template put<0, T>(kept * p - rate * first / (scale * math::sqrt(second) + eps));
    m.template put<1, C>(first);
    m.template put<2, C>(second);
  }
};

/// Adam adds weight_decay p to the gradient, AdamW shrinks p itself. Both are one formula, so one kernel.
template <class Options, bool Decoupled>
struct adam_rule {
  using options = Options;
  static void validate(const options& o) {
    const char* const name = Decoupled ? "adamw" : "adam";
    check_setting(name, "beta1", o.beta1, 1);
    check_setting(name, "beta2", o.beta2, 1);
    check_setting(name, "eps", o.eps);
    check_setting(name, "weight_decay", o.weight_decay);
  }

  template <class T, device D>
  struct state {
    running<T, D> m, v;
    double power1 = 1, power2 = 1;  // beta1^t, beta2^t

    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      sinter::detail::refuse_capture(Decoupled ? "a step of adamw" : "a step of adam",
                                     "it counts its steps on the host, which a replay does not; call step() after replay()");
      power1 *= o.beta1;
      power2 *= o.beta2;
      using C = compute_type<T>;
      adam_kernel<T> k;
      k.beta1 = static_cast<C>(o.beta1);
      k.beta2 = static_cast<C>(o.beta2);
      k.fresh1 = static_cast<C>(1 - o.beta1);
      k.fresh2 = static_cast<C>(1 - o.beta2);
      k.eps = static_cast<C>(o.eps);
      k.gradient_scale = static_cast<C>(gradient_scale);
      k.added_decay = static_cast<C>(Decoupled ? 0 : o.weight_decay);
      k.kept = static_cast<C>(Decoupled ? 1 - lr * o.weight_decay : 1);
      k.rate = static_cast<C>(lr / (1 - power1));
      k.scale = static_cast<C>(1 / std::sqrt(1 - power2));
      C* const first = m.of(p.numel());
      C* const second = v.of(p.numel());
      run_update<D>(k, p.numel(), {p.data(), p.grad(), first, second}, {p.data(), first, second});
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
