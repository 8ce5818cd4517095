// sinter/optim/rmsprop.hpp: RMSprop, also centred and with momentum.
#pragma once

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
  static void validate(const options& o);

  template <class T, bool Centered, bool Momentum>
  struct kernel {
    static constexpr int leaves = 3 + Centered + Momentum, outputs = leaves - 1;
    static constexpr int mean = 3, momentum_at = 3 + Centered;  // operand numbers; outputs are one less
    using C = compute_type<T>;
    template <bool There>
    using optional_sum = sinter::detail::kernel::type_list_if<There, C>;
    using leaf_types = sinter::detail::kernel::concatenated<sinter::detail::kernel::type_list<T, T, C>,
                                                            optional_sum<Centered>, optional_sum<Momentum>>;
    using output_types = sinter::detail::kernel::concatenated<sinter::detail::kernel::type_list<T, C>,
                                                              optional_sum<Centered>, optional_sum<Momentum>>;
    C lr, gradient_scale, decay, alpha, fresh, eps, momentum;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      const auto g = gradient_scale * m.template load<1, T>() + decay * p;
      const auto squares = alpha * m.template load<2, C>() + fresh * (g * g);
      m.template put<1, C>(squares);
      auto step = squares;
      if constexpr (Centered) {
        const auto before = m.template load<mean, C>();
        const auto now = before + fresh * (g - before);
        m.template put<mean - 1, C>(now);
        step = g / (math::sqrt(squares - now * now) + eps);
      } else {
        step = g / (math::sqrt(squares) + eps);
      }
      if constexpr (Momentum) {
        step = momentum * m.template load<momentum_at, C>() + step;
        m.template put<momentum_at - 1, C>(step);
      }
      m.template put<0, T>(p - lr * step);
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> squares, mean, momentum;

    template <class F>
    void each_saved(const F& f) {
      f("squares", squares);
      f("mean", mean);
      f("momentum", momentum);
    }

    void reserve(index_t n, const options& o) {
      squares.reserve(n);
      if (o.centered) mean.reserve(n);
      if (o.momentum != 0) momentum.reserve(n);
    }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      const auto run = [&]<bool Centered, bool Momentum>() {
        using K = kernel<T, Centered, Momentum>;
        using C = compute_type<T>;
        const flat_values memory[] = {p.data(), squares.data(), (Centered ? mean : momentum).data(), momentum.data()};
        flat_values in[K::leaves];
        flat_values out[K::outputs];
        for (int i = 0; i < K::outputs; ++i) in[i == 0 ? 0 : i + 1] = out[i] = memory[i];
        in[1] = p.grad();
        run_update<D>(
            K{static_cast<C>(lr), static_cast<C>(gradient_scale), static_cast<C>(o.weight_decay),
              static_cast<C>(o.alpha), static_cast<C>(1 - o.alpha), static_cast<C>(o.eps), static_cast<C>(o.momentum)},
            p.numel(), in, out);
      };
      if (o.centered && o.momentum != 0) run.template operator()<true, true>();
      else if (o.centered) run.template operator()<true, false>();
      else if (o.momentum != 0) run.template operator()<false, true>();
      else run.template operator()<false, false>();
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void rmsprop_rule::validate(const options& o) {
  check_setting("rmsprop", "alpha", o.alpha);
  check_setting("rmsprop", "eps", o.eps);
  check_setting("rmsprop", "weight_decay", o.weight_decay);
  check_setting("rmsprop", "momentum", o.momentum);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.RMSprop: g = gradient + weight_decay p, v = alpha v + (1 - alpha) g^2, d = g / (sqrt(v) + eps), or
/// centred with v less the square of the running mean of g; p -= lr d, or p -= lr m with m = momentum m + d.
/// G. Hinton, Neural Networks for Machine Learning, lecture 6e (2012).
using rmsprop = rule_optimizer<detail::rmsprop_rule>;

}  // namespace sinter::optim
