// sinter/optim/adamax.hpp: Adamax, Adam with the largest gradient in place of the root of the mean of squares.
#pragma once

#include "sinter/optim/adam.hpp"

namespace sinter::optim {

struct adamax_options {
  double lr = 0.002;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
};

namespace detail {

struct adamax_rule {
  using options = adamax_options;
  static void validate(const options& o);

  template <class T, class Sizes>
  struct kernel {
    static constexpr int leaves = 4, outputs = 3;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, T, C, C>;
    using output_types = sinter::detail::kernel::type_list<T, C, C>;
    C beta1, beta2, fresh, eps, gradient_scale, decay;
    Sizes size;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto p = m.template load<0, T>();
      const auto g = gradient_scale * m.template load<1, T>() + decay * p;
      const auto first = beta1 * m.template load<2, C>() + fresh * g;
      const auto before = beta2 * m.template load<3, C>(), now = math::abs(g) + eps;
      const auto largest = math::select(before < now, now, before);
      m.template put<0, T>(p - number_at<C>(size.rate) * first / largest);
      m.template put<1, C>(first);
      m.template put<2, C>(largest);
    }
  };

  template <class T, device D>
  struct state {
    running<T, D> m, largest;
    step_size<compute_type<T>, D> size;

    template <class F>
    void each_saved(const F& f) {
      f("m", m);
      f("largest", largest);
      f("powers", size);
    }

    void reserve(index_t n, const options&) {
      m.reserve(n);
      largest.reserve(n);
      size.reserve();
    }
    void count(const options& o, double lr) { size.count(o.beta1, o.beta2, lr); }
    void update(const flat_parameter<T, D>& p, const options& o, double, double gradient_scale) {
      using C = compute_type<T>;
      const kernel<T, typename step_size<C, D>::given> k{
          .beta1 = static_cast<C>(o.beta1),
          .beta2 = static_cast<C>(o.beta2),
          .fresh = static_cast<C>(1 - o.beta1),
          .eps = static_cast<C>(o.eps),
          .gradient_scale = static_cast<C>(gradient_scale),
          .decay = static_cast<C>(o.weight_decay),
          .size = size.now(),
      };
      run_update<D>(k, p.numel(), {p.data(), p.grad(), m.data(), largest.data()}, {p.data(), m.data(), largest.data()});
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void adamax_rule::validate(const options& o) { check_adam_settings("adamax", o); }

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.Adamax: g = gradient + weight_decay p, m = beta1 m + (1 - beta1) g, u = max(beta2 u, |g| + eps),
/// p -= lr m / (u (1 - beta1^t)). D. P. Kingma and J. Ba, ICLR 2015, section 7.1.
///
///     optim::adamax optimizer(model, {.lr = 2e-3});
using adamax = rule_optimizer<detail::adamax_rule>;

}  // namespace sinter::optim
