// sinter/optim/lion.hpp: Lion, steps of one size in the direction of a sign.
#pragma once

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct lion_options {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  double weight_decay = 0;
};

namespace detail {

struct lion_rule {
  using options = lion_options;
  static void validate(const options& o);

  template <class T>
  struct kernel {
    static constexpr int leaves = 3, outputs = 2;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, T, C>;
    using output_types = sinter::detail::kernel::type_list<T, C>;
    C lr, gradient_scale, kept, beta1, fresh1, beta2, fresh2;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto g = gradient_scale * m.template load<1, T>();
      const auto first = m.template load<2, C>();
      m.template put<0, T>(kept * m.template load<0, T>() - lr * math::sign(beta1 * first + fresh1 * g));
      m.template put<1, C>(beta2 * first + fresh2 * g);
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> m;

    template <class F>
    void each_saved(const F& f) {
      f("m", m);
    }

    void reserve(index_t n, const options&) { m.reserve(n); }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      using C = compute_type<T>;
      run_update<D>(kernel<T>{static_cast<C>(lr), static_cast<C>(gradient_scale),
                              static_cast<C>(1 - lr * o.weight_decay), static_cast<C>(o.beta1),
                              static_cast<C>(1 - o.beta1), static_cast<C>(o.beta2), static_cast<C>(1 - o.beta2)},
                    p.numel(), {p.data(), p.grad(), m.data()}, {p.data(), m.data()});
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void lion_rule::validate(const options& o) {
  check_setting("lion", "beta1", o.beta1, 1);
  check_setting("lion", "beta2", o.beta2, 1);
  check_setting("lion", "weight_decay", o.weight_decay);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// p = (1 - lr weight_decay) p - lr sign(beta1 m + (1 - beta1) g), then m = beta2 m + (1 - beta2) g. All elements move
/// by lr, so that it wants a third to a tenth of the rate of adamw. X. Chen et al., "Symbolic discovery of optimization
/// algorithms", NeurIPS 2023.
///
///     optim::lion optimizer(model, {.lr = 1e-4, .weight_decay = 0.1});
using lion = rule_optimizer<detail::lion_rule>;

}  // namespace sinter::optim
