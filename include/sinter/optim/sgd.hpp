// sinter/optim/sgd.hpp: stochastic gradient descent with momentum.
#pragma once

#include <utility>

#include "sinter/optim/optimizer.hpp"
#include "sinter/optim/row_update.hpp"

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
  static void validate(const options& o);
  static void validate_rows(const options& o);

  template <class T>
  struct plain_kernel {
    static constexpr int leaves = 2, outputs = 1;
    using leaf_types = sinter::detail::kernel::type_list<T, T>;
    using output_types = sinter::detail::kernel::type_list<T>;
    compute_type<T> lr, gradient_scale, decay;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      m.template put<0, T>(p - lr * (gradient_scale * m.template load<1, T>() + decay * p));
    }
  };

  template <class T>
  struct momentum_kernel {
    static constexpr int leaves = 3, outputs = 2;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, T, C>;
    using output_types = sinter::detail::kernel::type_list<T, C>;
    C lr, gradient_scale, decay, momentum, fresh;
    C of_gradient, of_momentum;  // what of each goes into the step
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      const auto g = gradient_scale * m.template load<1, T>() + decay * p;
      const auto v = momentum * m.template load<2, C>() + fresh * g;
      m.template put<0, T>(p - lr * (of_gradient * g + of_momentum * v));
      m.template put<1, C>(v);
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> momentum;
    bool begun = false;
    row_room<T, D, 0> rows = {};

    template <class F>
    void each_saved(const F& f) {
      f("momentum", momentum);
      f("begun", begun);
    }

    void reserve(index_t n, const options& o) {
      if (o.momentum != 0) momentum.reserve(n);
    }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      using C = compute_type<T>;
      const C rate = static_cast<C>(lr), scale = static_cast<C>(gradient_scale);
      const C decay = static_cast<C>(o.weight_decay), mu = static_cast<C>(o.momentum);
      if (o.momentum == 0)
        return run_update<D>(plain_kernel<T>{rate, scale, decay}, p.numel(), {p.data(), p.grad()}, {p.data()});
      const C fresh = std::exchange(begun, true) ? static_cast<C>(1 - o.dampening) : C(1);
      C* const v = momentum.data();
      run_update<D>(momentum_kernel<T>{rate, scale, decay, mu, fresh, C(o.nesterov ? 1 : 0), o.nesterov ? mu : C(1)},
                    p.numel(), {p.data(), p.grad(), v}, {p.data(), v});
    }
    void reserve_rows(const row_gradient<T, D>& g) { rows.reserve(g); }
    void update_rows(const flat_parameter<T, D>& p, const row_gradient<T, D>& g, const options&, double lr,
                     double gradient_scale) {
      using C = compute_type<T>;
      run_row_update(plain_kernel<T>{static_cast<C>(lr), static_cast<C>(gradient_scale), C(0)}, p, g, rows);
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void sgd_rule::validate(const options& o) {
  check_setting("sgd", "momentum", o.momentum);
  check_setting("sgd", "weight_decay", o.weight_decay);
  if (!std::isfinite(o.dampening)) throw value_error("sgd: dampening must be finite");
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    throw value_error("sgd: Nesterov's momentum needs a momentum above 0 and no dampening");
}

SINTER_SHARED void sgd_rule::validate_rows(const options& o) {
  if (o.momentum != 0 || o.weight_decay != 0)
    throw value_error("sgd: momentum and weight_decay change all rows of a row-sparse table; set both to 0");
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// p -= lr d with, as in torch.optim.SGD: g = gradient + weight_decay p; without momentum d = g; with it
/// m = momentum m + (1 - dampening) g (m = g at first), d = m, or g + momentum m for Nesterov's. Of a row_sparse()
/// table only the rows that have a gradient change, without momentum and weight_decay.
///
///     optim::sgd optimizer(model, {.lr = 0.1, .momentum = 0.9});
using sgd = rule_optimizer<detail::sgd_rule>;

}  // namespace sinter::optim
