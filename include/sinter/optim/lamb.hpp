// sinter/optim/lamb.hpp: LAMB, Adam whose step is in proportion to the norm of each parameter.
#pragma once

#include "sinter/ops/add.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/ops/sqrt.hpp"
#include "sinter/ops/where.hpp"
#include "sinter/optim/adam.hpp"

namespace sinter::optim {

struct lamb_options {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  double weight_decay = 0.01;
  bool always_adapt = false;  ///< also parameters without weight_decay
};

namespace detail {

/// m and v of Adam. m goes ahead of the parameter, whose step needs a norm of all of them.
template <class T>
struct moments_kernel {
  static constexpr int leaves = 3, outputs = 2;
  using C = compute_type<T>;
  using leaf_types = sinter::detail::kernel::type_list<T, C, C>;
  using output_types = sinter::detail::kernel::type_list<C, C>;
  C beta1, beta2, fresh1, fresh2, gradient_scale;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto g = gradient_scale * m.template load<0, T>();
    m.template put<0, C>(beta1 * m.template load<1, C>() + fresh1 * g);
    m.template put<1, C>(beta2 * m.template load<2, C>() + fresh2 * (g * g));
  }
};

/// p -= lr trust r. Sizes is step_size::given, Trust a number or where it lies on a GPU.
template <class T, class Sizes, class Trust>
struct lamb_kernel {
  static constexpr int leaves = 3, outputs = 1;
  using C = compute_type<T>;
  using leaf_types = sinter::detail::kernel::type_list<T, C, C>;
  using output_types = sinter::detail::kernel::type_list<T>;
  C lr, eps, decay;
  Sizes size;
  Trust trust;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto p = m.template load<0, T>();
    const auto root = number_at<C>(size.scale) * math::sqrt(m.template load<2, C>()) + eps;
    const auto r = number_at<C>(size.rate) * m.template load<1, C>() / root + decay * p;
    m.template put<0, T>(p - lr * number_at<C>(trust) * r);
  }
};

/// A number in an expression.
template <device D, class C>
C number_of(C x) {
  return x;
}
template <device D, class C>
tensor<C, 0, D> number_of(C* x) {
  return wrap<D>(x, extents<0>{});
}

struct lamb_rule {
  using options = lamb_options;
  static void validate(const options& o) { check_adam_settings("lamb", o); }

  template <class T, device D>
  struct state {
    running<T, D> m, v;
    step_size<compute_type<T>, D> size;

    template <class F>
    void each_saved(const F& f) {
      f("m", m);
      f("v", v);
      f("powers", size);
    }

    void reserve(index_t n, const options&) {
      m.reserve(n);
      v.reserve(n);
      size.reserve();
    }
    void count(const options& o, double) { size.count(o.beta1, o.beta2, 1); }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      using C = compute_type<T>;
      const at_once passes;  // each reads what the one before wrote
      run_update<D>(moments_kernel<T>{static_cast<C>(o.beta1), static_cast<C>(o.beta2), static_cast<C>(1 - o.beta1),
                                      static_cast<C>(1 - o.beta2), static_cast<C>(gradient_scale)},
                    p.numel(), {p.grad(), m.data(), v.data()}, {m.data(), v.data()});
      if (o.weight_decay == 0 && !o.always_adapt) return move(p, o, lr, C(1));
      const auto sizes = size.now();
      const auto value = cast<C>(p.flat());
      const tensor<C, 0, D> of_value = norm(value);
      const tensor<C, 0, D> of_step =
          norm(m.flat() * number_of<D>(sizes.rate) / (sqrt(v.flat()) * number_of<D>(sizes.scale) + o.eps) +
               value * o.weight_decay);
      const tensor<C, 0, D> trust = where(of_value > 0 && of_step > 0, of_value / of_step, 1);
      if constexpr (is_cuda_v<D>) move(p, o, lr, access::data(trust));
      else move(p, o, lr, trust.item());
    }

   private:
    template <class Trust>
    void move(const flat_parameter<T, D>& p, const options& o, double lr, Trust trust) {
      using C = compute_type<T>;
      run_update<D>(
          lamb_kernel<T, typename step_size<C, D>::given, Trust>{static_cast<C>(lr), static_cast<C>(o.eps),
                                                                 static_cast<C>(o.weight_decay), size.now(), trust},
          p.numel(), {p.data(), m.data(), v.data()}, {p.data()});
    }
  };
};

}  // namespace detail

/// Adam's step r = m' / (sqrt(v') + eps) + weight_decay p, in the length of the parameter: p -= lr |p| / |r| r, with
/// Euclidean norms over the whole parameter. The factor is 1 where a norm is 0, and for parameters without
/// weight_decay, such as biases in a group of their own, unless `always_adapt`. For large batches; gradients are
/// clipped by clip_grad_norm, which other implementations do on their own. On a GPU each parameter takes kernels of its
/// own. Y. You et al., "Large batch optimization for deep learning: training BERT in 76 minutes", ICLR 2020.
///
///     optim::lamb optimizer(model, {.lr = 2e-3, .weight_decay = 0.01});
using lamb = rule_optimizer<detail::lamb_rule>;

}  // namespace sinter::optim
