// sinter/optim/nadam.hpp: NAdam and RAdam, Adam with Nesterov's momentum and with a rate that is rectified.
#pragma once

#include "sinter/optim/adam.hpp"

namespace sinter::optim {

struct nadam_options {
  double lr = 0.002;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum_decay = 4e-3;
};

using radam_options = adam_options;

namespace detail {

/// p -= by_gradient g / d + by_mean m / d, where d is scale sqrt(v) + eps, or 1 where the rule does not divide.
template <class T, bool Divides>
struct weighed_adam_kernel {
  static constexpr int leaves = 4, outputs = 3;
  using C = compute_type<T>;
  using leaf_types = sinter::detail::kernel::type_list<T, T, C, C>;
  using output_types = sinter::detail::kernel::type_list<T, C, C>;
  C beta1, beta2, fresh1, fresh2, eps, gradient_scale, decay, by_gradient, by_mean, scale;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto p = m.template load<0, T>();
    const auto g = gradient_scale * m.template load<1, T>() + decay * p;
    const auto first = beta1 * m.template load<2, C>() + fresh1 * g;
    const auto second = beta2 * m.template load<3, C>() + fresh2 * (g * g);
    const auto step = by_gradient * g + by_mean * first;
    if constexpr (Divides) m.template put<0, T>(p - step / (scale * math::sqrt(second) + eps));
    else m.template put<0, T>(p - step);
    m.template put<1, C>(first);
    m.template put<2, C>(second);
  }
};

/// What the steps weigh: numbers of the host.
struct adam_weights {
  double by_gradient, by_mean, scale;
  bool divides;
};

/// Rule says in weights(options, lr, steps, product) what a step weighs.
template <class Rule, class Options>
struct weighed_adam_rule {
  using options = Options;
  static void validate(const options& o) {
    check_adam_settings(Rule::name, o);
    Rule::validate_more(o);
  }

  template <class T, device D>
  struct state {
    running<T, D> m, v;
    std::int64_t steps = 0;

    template <class F>
    void each_saved(const F& f) {
      f("m", m);
      f("v", v);
      f("steps", steps);
    }

    void reserve(index_t n, const options&) {
      m.reserve(n);
      v.reserve(n);
    }
    void count(const options&, double) {
      sinter::detail::refuse_capture("a step of this optimizer",
                                     "it is counted on the host, and a replay would repeat it; use adam");
      ++steps;
    }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      const adam_weights w = Rule::weights(o, lr, steps);
      if (w.divides) run<true>(p, o, w, gradient_scale);
      else run<false>(p, o, w, gradient_scale);
    }

   private:
    template <bool Divides>
    void run(const flat_parameter<T, D>& p, const options& o, const adam_weights& w, double gradient_scale) {
      using C = compute_type<T>;
      const weighed_adam_kernel<T, Divides> k{
          .beta1 = static_cast<C>(o.beta1),
          .beta2 = static_cast<C>(o.beta2),
          .fresh1 = static_cast<C>(1 - o.beta1),
          .fresh2 = static_cast<C>(1 - o.beta2),
          .eps = static_cast<C>(o.eps),
          .gradient_scale = static_cast<C>(gradient_scale),
          .decay = static_cast<C>(o.weight_decay),
          .by_gradient = static_cast<C>(w.by_gradient),
          .by_mean = static_cast<C>(w.by_mean),
          .scale = static_cast<C>(w.scale),
      };
      run_update<D>(k, p.numel(), {p.data(), p.grad(), m.data(), v.data()}, {p.data(), m.data(), v.data()});
    }
  };
};

struct nadam_rule : weighed_adam_rule<nadam_rule, nadam_options> {
  static constexpr const char* name = "nadam";
  static void validate_more(const nadam_options& o);
  static adam_weights weights(const nadam_options& o, double lr, std::int64_t t);
};
struct radam_rule : weighed_adam_rule<radam_rule, radam_options> {
  static constexpr const char* name = "radam";
  static void validate_more(const radam_options&) {}
  static adam_weights weights(const radam_options& o, double lr, std::int64_t t);
};

#if SINTER_DEFINES

SINTER_SHARED void nadam_rule::validate_more(const nadam_options& o) {
  check_setting("nadam", "momentum_decay", o.momentum_decay);
}
SINTER_SHARED adam_weights nadam_rule::weights(const nadam_options& o, double lr, std::int64_t t) {
  const auto momentum = [&](std::int64_t i) {
    return o.beta1 * (1 - 0.5 * std::pow(0.96, static_cast<double>(i) * o.momentum_decay));
  };
  double product = 1;  // from where it is nearly 0 on, the steps before do not matter
  for (std::int64_t i = t; i >= 1 && product > 1e-20; --i) product *= momentum(i);
  const double next = momentum(t + 1);
  return {lr * (1 - momentum(t)) / (1 - product), lr * next / (1 - product * next),
          1 / std::sqrt(1 - std::pow(o.beta2, static_cast<double>(t))), true};
}

SINTER_SHARED adam_weights radam_rule::weights(const radam_options& o, double lr, std::int64_t t) {
  const auto n = static_cast<double>(t);
  const double power2 = std::pow(o.beta2, n), longest = 2 / (1 - o.beta2) - 1;
  const double length = longest - 2 * n * power2 / (1 - power2), rate = lr / (1 - std::pow(o.beta1, n));
  if (!(length > 5)) return {0, rate, 1, false};
  const double rectified = std::sqrt((length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length));
  return {0, rate * rectified * std::sqrt(1 - power2), 1, true};
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.NAdam: Adam whose step looks ahead, with the momentum mu(t) = beta1 (1 - 0.96^(t momentum_decay) /
/// 2). Steps are counted on the host; a CUDA graph does not capture them. T. Dozat, ICLR workshop 2016.
///
///     optim::nadam optimizer(model, {.lr = 2e-3});
using nadam = rule_optimizer<detail::nadam_rule>;

/// As torch.optim.RAdam: Adam whose first steps do not divide by the root of the mean of squares, and whose later ones
/// are smaller while few squares are in it. Counted as nadam. L. Liu et al., ICLR 2020.
///
///     optim::radam optimizer(model);
using radam = rule_optimizer<detail::radam_rule>;

}  // namespace sinter::optim
