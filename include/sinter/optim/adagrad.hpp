// sinter/optim/adagrad.hpp: Adagrad.
#pragma once

#include "sinter/optim/optimizer.hpp"
#include "sinter/optim/row_update.hpp"

namespace sinter::optim {

struct adagrad_options {
  double lr = 0.01;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
};

namespace detail {

struct adagrad_rule {
  using options = adagrad_options;
  static void validate(const options& o);
  static void validate_rows(const options& o);

  template <class T>
  struct kernel {
    static constexpr int leaves = 3, outputs = 2;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, T, C>;
    using output_types = sinter::detail::kernel::type_list<T, C>;
    C lr, gradient_scale, decay, eps;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      const auto g = gradient_scale * m.template load<1, T>() + decay * p;
      const auto squares = m.template load<2, C>() + g * g;
      m.template put<0, T>(p - lr * g / (math::sqrt(squares) + eps));
      m.template put<1, C>(squares);
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> squares;
    std::int64_t steps = 0;
    row_room<T, D, 1> rows = {};

    template <class F>
    void each_saved(const F& f) {
      f("squares", squares);
      f("steps", steps);
    }

    void reserve(index_t n, const options& o) { squares.reserve(n, o.initial_accumulator_value); }
    void count(const options&, double) { ++steps; }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      run_update<D>(kernel_of(o, lr, gradient_scale), p.numel(), {p.data(), p.grad(), squares.data()},
                    {p.data(), squares.data()});
    }
    void reserve_rows(const row_gradient<T, D>& g) { rows.reserve(g); }
    void update_rows(const flat_parameter<T, D>& p, const row_gradient<T, D>& g, const options& o, double lr,
                     double gradient_scale) {
      run_row_update(kernel_of(o, lr, gradient_scale), p, g, rows, squares);
    }

   private:
    kernel<T> kernel_of(const options& o, double lr, double gradient_scale) const {
      using C = compute_type<T>;
      const double rate = lr / (1 + static_cast<double>(steps - 1) * o.lr_decay);
      return {static_cast<C>(rate), static_cast<C>(gradient_scale), static_cast<C>(o.weight_decay),
              static_cast<C>(o.eps)};
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void adagrad_rule::validate(const options& o) {
  check_setting("adagrad", "lr_decay", o.lr_decay);
  check_setting("adagrad", "weight_decay", o.weight_decay);
  check_setting("adagrad", "initial_accumulator_value", o.initial_accumulator_value);
  check_setting("adagrad", "eps", o.eps);
}
SINTER_SHARED void adagrad_rule::validate_rows(const options& o) {
  if (o.weight_decay != 0)
    throw value_error("adagrad: weight_decay changes all rows of a row-sparse table; set it to 0");
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.Adagrad: g = gradient + weight_decay p, s += g^2, p -= lr' g / (sqrt(s) + eps), where
/// lr' = lr / (1 + (t - 1) lr_decay) in step t and s begins as initial_accumulator_value. Of a row_sparse() table only
/// the rows that have a gradient change. J. Duchi, E. Hazan, Y. Singer, JMLR 12, 2011.
///
///     optim::adagrad optimizer(model, {.lr = 0.05});
using adagrad = rule_optimizer<detail::adagrad_rule>;

}  // namespace sinter::optim
