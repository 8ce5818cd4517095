// sinter/optim/muon.hpp: Muon, momentum of matrices made nearly orthogonal.
#pragma once

#include <array>
#include <string>

#include "sinter/ops/add.hpp"
#include "sinter/ops/clamp_min.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/matmul.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/norm.hpp"
#include "sinter/optim/optimizer.hpp"

namespace sinter::optim {

/// By what the rate of an (A, B) matrix is multiplied.
enum class muon_rate {
  original,           ///< sqrt(max(1, A / B))
  match_rms_adamw,    ///< 0.2 sqrt(max(A, B)), for the rate and decay of adamw
  spectral_unclamped  ///< sqrt(A / B)
};

struct muon_options {
  double lr = 0.001;
  double weight_decay = 0.1;
  double momentum = 0.95;
  bool nesterov = true;
  std::array<double, 3> ns_coefficients = {3.4445, -4.7750, 2.0315};  ///< of X, X X^T X and (X X^T)^2 X
  double eps = 1e-7;                                                  ///< the norm of a gradient is at least that
  index_t ns_steps = 5;
  muon_rate adjust_lr_fn = muon_rate::original;
};

namespace detail {

struct muon_rule {
  using options = muon_options;
  static void validate(const options& o);
  static void validate_matrix(const extents<2>& shape, const std::string& label);
  /// Of a matrix (rows, columns).
  static double rate(const options& o, double lr, index_t rows, index_t columns);

  /// The momentum, and what of it and the gradient goes into the step.
  template <class T>
  struct momentum_kernel {
    static constexpr int leaves = 2, outputs = 2;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, C>;
    using output_types = sinter::detail::kernel::type_list<C, C>;
    C momentum, fresh, gradient_scale, of_gradient, of_momentum;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      const auto g = gradient_scale * m.template load<0, T>();
      const auto v = momentum * m.template load<1, C>() + fresh * g;
      m.template put<0, C>(v);
      m.template put<1, C>(of_gradient * g + of_momentum * v);
    }
  };
  template <class T>
  struct step_kernel {
    static constexpr int leaves = 2, outputs = 1;
    using C = compute_type<T>;
    using leaf_types = sinter::detail::kernel::type_list<T, C>;
    using output_types = sinter::detail::kernel::type_list<T>;
    C kept, rate;
    template <int, int, class M>
    SINTER_WORD void run(const M& m) const {
      m.template put<0, T>(kept * m.template load<0, T>() - rate * m.template load<1, C>());
    }
  };

  template <class T, device D>
  struct state {
    using C = compute_type<T>;
    running<T, D> momentum;

    template <class F>
    void each_saved(const F& f) {
      f("momentum", momentum);
    }

    void reserve(index_t n, const options&) { momentum.reserve(n); }
    void update(const flat_parameter<T, D>& p, const options& o, double lr, double gradient_scale) {
      if (p.numel() == 0) return;
      const at_once passes;  // each reads what the one before wrote
      const C mu = static_cast<C>(o.momentum), fresh = static_cast<C>(1 - o.momentum);
      C* const v = momentum.data();
      const auto u = tensor<C, 2, D>::uninitialized(p.matrix());
      run_update<D>(momentum_kernel<T>{mu, fresh, static_cast<C>(gradient_scale), o.nesterov ? fresh : C(0),
                                       o.nesterov ? mu : C(1)},
                    p.numel(), {p.grad(), v}, {v, access::data(u)});
      const tensor<C, 2, D> x = orthogonal(u, o);
      const extents<2>& shape = p.matrix();
      const double rate = muon_rule::rate(o, lr, shape[p.by_columns() ? 1 : 0], shape[p.by_columns() ? 0 : 1]);
      run_update<D>(step_kernel<T>{static_cast<C>(1 - lr * o.weight_decay), static_cast<C>(rate)}, p.numel(),
                    {p.data(), access::data(x)}, {p.data()});
    }

   private:
    /// x = U S V^T to nearly U V^T; on the side where X X^T or X^T X is smaller.
    static tensor<C, 2, D> orthogonal(const tensor<C, 2, D>& u, const options& o) {
      const auto [a, b, c] = o.ns_coefficients;
      const tensor<C, 0, D> length = clamp_min(norm(u), o.eps);
      tensor<C, 2, D> x = u / length;
      const bool tall = u.extent(0) > u.extent(1);
      for (index_t i = 0; i < o.ns_steps; ++i) {
        const tensor<C, 2, D> gram = matmul(tall ? x.transpose() : x, tall ? x : x.transpose());
        const tensor<C, 2, D> square = matmul(gram, gram);
        const tensor<C, 2, D> sum = b * gram + c * square;
        const tensor<C, 2, D> product = matmul(tall ? x : sum, tall ? sum : x);
        x = a * x + product;
      }
      return x;
    }
  };
};

#if SINTER_DEFINES

SINTER_SHARED void muon_rule::validate(const options& o) {
  check_setting("muon", "weight_decay", o.weight_decay);
  check_setting("muon", "momentum", o.momentum);
  check_setting("muon", "eps", o.eps);
  if (o.ns_steps < 0 || o.ns_steps >= 100)
    sinter::detail::refuse<value_error>({"muon: ns_steps must be in [0, 100), but is ", o.ns_steps});
}

SINTER_SHARED_COLD void muon_rule::validate_matrix(const extents<2>& shape, const std::string& label) {
  if (shape[0] < 0)
    sinter::detail::refuse<value_error>({"muon: parameter ", label,
                                         " is not a matrix; give muon the matrices by optim::only(model, f), and the "
                                         "other parameters to another optimizer"});
}

SINTER_SHARED double muon_rule::rate(const options& o, double lr, index_t rows, index_t columns) {
  const auto a = static_cast<double>(rows), b = static_cast<double>(columns);
  switch (o.adjust_lr_fn) {
    case muon_rate::match_rms_adamw:
      return lr * 0.2 * std::sqrt(a > b ? a : b);
    case muon_rate::spectral_unclamped:
      return lr * std::sqrt(a / b);
    case muon_rate::original:
      break;
  }
  return lr * std::sqrt(a > b ? a / b : 1);
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// As torch.optim.Muon, for the matrices of hidden layers: m = momentum m + (1 - momentum) g, u = (1 - momentum) g +
/// momentum m for Nesterov's, else m; p = (1 - lr weight_decay) p - lr' X, with lr' of `adjust_lr_fn`. X is u made
/// nearly orthogonal: u / |u|, then `ns_steps` times a X + b X X^T X + c (X X^T)^2 X, in float (of double in double),
/// where PyTorch rounds to bfloat16. Other parameters, tables and last layers go to another optimizer, such as adamw.
/// Errors: value_error for a parameter that is not a matrix. A step that runs out of memory may have moved some of
/// them. K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024.
///
///     const auto hidden = [](const nn::parameter_info& p) { return p.shape.size() == 2; };
///     optim::muon matrices(optim::only(model, hidden), {.lr = 0.02});
///     optim::adamw others(optim::only(model, std::not_fn(hidden)), {.lr = 1e-3});
using muon = rule_optimizer<detail::muon_rule>;

}  // namespace sinter::optim
