// sinter/optim/adadelta.hpp: Adadelta.
#pragma once

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct adadelta_options {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  double weight_decay = 0;
};

namespace detail {

struct adadelta_rule {
  using options = adadelta_options;
  static void validate(const options& o);

  template <class T>
  struct kernel {
    static constexpr int leaves = 4, outputs = 3;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, T, C, C>;
    using output_types = sinter::detail::kernel::type_list<T, C, C>;
    C lr, gradient_scale, decay, rho, fresh, eps;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      const auto g = gradient_scale * m.template load<1, T>() + decay * p;
      const auto squares = rho * m.template load<2, C>() + fresh * (g * g);
      const auto steps = m.template load<3, C>();
      const auto step = math::sqrt(steps + eps) / math::sqrt(squares + eps) * g;
      m.template put<0, T>(p - lr * step);
      m.template put<1, C>(squares);
      m.template put<2, C>(rho * steps + fresh * (step * step));
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> squares, steps;

    template <class F>
    void each_saved(const F& f) {
      f("squares", squares);
      f("steps", steps);
    }

    void reserve(index_t n, const options&) {
      squares.reserve(n);
      steps.reserve(n);
    }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      using C = compute_type<T>;
      run_update<D>(kernel<T>{static_cast<C>(lr), static_cast<C>(gradient_scale), static_cast<C>(o.weight_decay),
                              static_cast<C>(o.rho), static_cast<C>(1 - o.rho), static_cast<C>(o.eps)},
                    p.numel(), {p.data(), p.grad(), squares.data(), steps.data()},
                    {p.data(), squares.data(), steps.data()});
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void adadelta_rule::validate(const options& o) {
  check_setting("adadelta", "rho", o.rho, 1);
  check_setting("adadelta", "eps", o.eps);
  check_setting("adadelta", "weight_decay", o.weight_decay);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.Adadelta: g = gradient + weight_decay p, v = rho v + (1 - rho) g^2, d = sqrt(u + eps) / sqrt(v + eps)
/// g, u = rho u + (1 - rho) d^2, p -= lr d. M. D. Zeiler, arXiv 1212.5701, 2012.
///
///     optim::adadelta optimizer(model, {.rho = 0.95});
using adadelta = rule_optimizer<detail::adadelta_rule>;

}  // namespace sinter::optim
