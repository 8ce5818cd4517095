// sinter/optim/adam.hpp: Adam and AdamW.
#pragma once

#include <utility>

#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

struct write_dot_beta1_and_dot_beta2;  // in messages

struct adam_options {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_beta1_and_dot_beta2> betas = {};
};

struct adamw_options {
  double lr = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  [[no_unique_address]] sinter::detail::option_named_otherwise<write_dot_beta1_and_dot_beta2> betas = {};
};

namespace detail {

/// How far step t goes: lr / (1 - beta1^t), and 1 / sqrt(1 - beta2^t). Counted on the host, or on a GPU in its own
/// memory, so that a step that is replayed there goes on counting.
template <class C, device D>
class step_size {
 public:
  struct given {
    C rate, scale;
  };
  void reserve() {}
  void count(double beta1, double beta2, double lr) {
    power1_ *= beta1;
    power2_ *= beta2;
    now_ = {static_cast<C>(lr / (1 - power1_)), static_cast<C>(1 / std::sqrt(1 - power2_))};
  }
  given now() const { return now_; }

  // For checkpoints; see saved_type. now() is of a step that is over.
  std::optional<host_tensor> saved() const { return host_tensor(tensor<double, 1>{power1_, power2_}); }
  void restore(const host_tensor& from, index_t) {
    const auto powers = saved_values<double>(from, 2);
    power1_ = powers(0);
    power2_ = powers(1);
  }
  void take(step_size&& from) { *this = from; }

 private:
  double power1_ = 1, power2_ = 1;
  given now_{};
};

template <class C>
struct count_kernel {
  static constexpr int leaves = 2, outputs = 4;
  using leaf_types = sinter::detail::kernel::type_list<double, double>;
  using output_types = sinter::detail::kernel::type_list<double, double, C, C>;
  double beta1, beta2, lr;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const double power1 = beta1 * m.template load<0, double>(), power2 = beta2 * m.template load<1, double>();
    m.template put<0, double>(power1);
    m.template put<1, double>(power2);
    m.template put<2, C>(static_cast<C>(lr / (1 - power1)));
    m.template put<3, C>(static_cast<C>(1 / math::sqrt(1 - power2)));
  }
};

template <class C, device D>
  requires is_cuda_v<D>
class step_size<C, D> {
 public:
  struct given {
    C *rate, *scale;
  };
  void reserve() {
    if (powers_.defined()) return;
    auto sizes = zeros<C, D>(extents<1>{{2}});
    powers_ = ones<double, D>(extents<1>{{2}});
    sizes_ = std::move(sizes);
  }
  void count(double beta1, double beta2, double lr) {
    double* const power = access::data(powers_);
    const auto [rate, scale] = now();
    run_update<D>(count_kernel<C>{beta1, beta2, lr}, 1, {power, power + 1}, {power, power + 1, rate, scale});
  }
  given now() const { return {access::data(sizes_), access::data(sizes_) + 1}; }

  // The same values as on a host.
  std::optional<host_tensor> saved() const {
    return host_tensor(powers_.defined() ? powers_.template to<cpu>() : ones<double>(extents<1>{{2}}));
  }
  void restore(const host_tensor& from, index_t) {
    reserve();
    powers_ = saved_values<double>(from, 2).template to<D>();
  }
  void take(step_size&& from) {
    take_values(powers_, std::move(from.powers_));
    take_values(sizes_, std::move(from.sizes_));
  }

 private:
  tensor<double, 1, D> powers_;
  tensor<C, 1, D> sizes_;
};

template <class C>
SINTER_WORD C number_at(C x) {
  return x;
}
template <class C>
SINTER_WORD C number_at(const C* x) {
  return *x;
}

/// Sizes is step_size::given.
template <class T, class Sizes>
struct adam_kernel {
  static constexpr int leaves = 4, outputs = 3;
  using C = compute_type<T>;
  using leaf_types = sinter::detail::kernel::type_list<T, T, C, C>;
  using output_types = sinter::detail::kernel::type_list<T, C, C>;
  C beta1, beta2, fresh1, fresh2, eps, gradient_scale, added_decay, kept;
  Sizes size;
  template <int, int, class M>
  SINTER_WORD void run(const M& m) const {
    const auto p = m.template load<0, T>();
    const auto g = gradient_scale * m.template load<1, T>() + added_decay * p;
    const auto first = beta1 * m.template load<2, C>() + fresh1 * g;
    const auto second = beta2 * m.template load<3, C>() + fresh2 * (g * g);
    m.template put<0, T>(kept * p -
                         number_at<C>(size.rate) * first / (number_at<C>(size.scale) * math::sqrt(second) + eps));
    m.template put<1, C>(first);
    m.template put<2, C>(second);
  }
};

/// What Adam and its relatives have in common.
template <class Options>
void check_adam_settings(const char* name, const Options& o) {
  check_setting(name, "beta1", o.beta1, 1);
  check_setting(name, "beta2", o.beta2, 1);
  check_setting(name, "eps", o.eps);
  check_setting(name, "weight_decay", o.weight_decay);
}

/// Adam adds weight_decay p to the gradient, AdamW shrinks p itself. Both are one formula, so one kernel.
template <class Options, bool Decoupled>
struct adam_rule {
  using options = Options;
  static void validate(const options& o) { check_adam_settings(Decoupled ? "adamw" : "adam", o); }

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
    void count(const options& o, double lr) { size.count(o.beta1, o.beta2, lr); }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      using C = compute_type<T>;
      const adam_kernel<T, typename step_size<C, D>::given> k{
          .beta1 = static_cast<C>(o.beta1),
          .beta2 = static_cast<C>(o.beta2),
          .fresh1 = static_cast<C>(1 - o.beta1),
          .fresh2 = static_cast<C>(1 - o.beta2),
          .eps = static_cast<C>(o.eps),
          .gradient_scale = static_cast<C>(gradient_scale),
          .added_decay = static_cast<C>(Decoupled ? 0 : o.weight_decay),
          .kept = static_cast<C>(Decoupled ? 1 - lr * o.weight_decay : 1),
          .size = size.now(),
      };
      run_update<D>(k, p.numel(), {p.data(), p.grad(), m.data(), v.data()}, {p.data(), m.data(), v.data()});
    }
  };
};

}  // namespace detail

/// As torch.optim.Adam: g = gradient + weight_decay p, m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2,
/// p -= lr m' / (sqrt(v') + eps) with m' = m / (1 - beta1^t), v' = v / (1 - beta2^t).
/// D. P. Kingma and J. Ba, ICLR 2015.
///
///     optim::adam optimizer(model, {.lr = 1e-3});
using adam = rule_optimizer<detail::adam_rule<adam_options, false>>;

/// As torch.optim.AdamW: Adam without decay in the gradient, after p *= 1 - lr weight_decay.
/// I. Loshchilov and F. Hutter, ICLR 2019.
using adamw = rule_optimizer<detail::adam_rule<adamw_options, true>>;

}  // namespace sinter::optim
