// sinter/nn/fold_batch_norm.hpp: batch norms that become part of the convolutions before them.
#pragma once

#include <functional>

#include "sinter/nn/conv.hpp"
#include "sinter/nn/norm.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/sqrt.hpp"

namespace sinter::nn {

namespace detail {

template <class M>
concept is_convolution_layer = requires(M& m) {
  m.weight;
  m.bias;
  m.options.padding_mode;
};
template <class M>
concept has_running_moments = requires(M& m) {
  m.running_mean.value();
  m.settings.eps;
};

/// Goes through lists of members, and folds each batch norm into the convolution that stands before it.
template <device D>
class batch_norm_folder {
 public:
  index_t folded = 0;

  template <class M>
  void operator()(sinter::detail::text_piece, M& member) {
    if constexpr (is_convolution_layer<M>) {
      before_ = [&member](const vector& scale, const vector& shift) { return absorb(member, scale, shift); };
    } else if constexpr (has_running_moments<M>) {
      if (before_) fold(member);
      before_ = nullptr;
    } else if constexpr (is_module<M> && !is_erased<M>) {
      before_ = nullptr;
      M::visit(*this, member);
      before_ = nullptr;
    }
  }

 private:
  using vector = tensor<double, 1, D>;
  enum class taken { nothing, scale, all };

  /// The convolution's result becomes result * scale, and + shift where it has a bias.
  template <class M>
  static taken absorb(const M& conv, const vector& scale, const vector& shift) {
    const auto weight = stored_value(conv.weight);
    using T = element_of<decltype(weight)>;
    constexpr int R = rank_of<decltype(weight)>;
    if (weight.shape()[0] != scale.numel()) return taken::nothing;
    index_t to[std::size_t{R}];
    for (int d = 1; d < R; ++d) to[d] = 1;
    to[0] = scale.numel();
    weight.in_place() = cast<T>(cast<double>(weight) * scale.reshape(to));
    if (!conv.bias.defined()) return taken::scale;
    const auto bias = stored_value(conv.bias);
    bias.in_place() = cast<T>(cast<double>(bias) * scale + shift);
    return taken::all;
  }

  /// What the convolution does not take stays as the running mean.
  template <class M>
  void fold(const M& norm) {
    const auto mean = norm.running_mean.value(), variance = norm.running_var.value();
    using C = element_of<decltype(mean)>;
    const double eps = norm.settings.eps;
    vector scale = 1 / sqrt(cast<double>(variance) + eps);
    vector shift = cast<double>(mean) * -scale;
    const bool affine = norm.weight.defined();
    if (affine) {
      scale = eval(scale * cast<double>(stored_value(norm.weight)));
      shift = eval(cast<double>(stored_value(norm.bias)) - cast<double>(mean) * scale);
    }
    const taken by_convolution = before_(scale, shift);
    if (by_convolution == taken::nothing) return;
    ++folded;
    mean.in_place() = cast<C>(by_convolution == taken::all ? shift * 0.0 : shift * -1.0);
    variance.in_place() = zeros<C, D>(variance.shape()) + static_cast<C>(1 - eps);
    if (!affine) return;
    const auto weight = stored_value(norm.weight), bias = stored_value(norm.bias);
    weight.in_place() = ones<element_of<decltype(weight)>, D>(weight.shape());
    bias.in_place() = zeros<element_of<decltype(bias)>, D>(bias.shape());
  }

  std::function<taken(const vector&, const vector&)> before_;
};

}  // namespace detail

/// Folds every batch norm of a model that stands behind a convolution, in the list of their module, into that
/// convolution's weights and bias, in place, and returns how many it was. Afterwards the norm does nothing in eval()
/// and infer(), or, behind a convolution without a bias, adds one. For models whose weights go elsewhere: here a batch
/// norm with running moments runs inside the convolution anyway. The order in the list must be that of the computation.
/// Norms inside any_module and behind transposed convolutions stay as they are.
///
///     index_t folded = nn::fold_batch_norm(model);  // infer(model)(x) is the same, to rounding
template <class M>
  requires is_module<M>
index_t fold_batch_norm(const M& model) {
  const no_grad untracked;
  detail::batch_norm_folder<device_of<M>> folder;
  M::visit(folder, model);
  return folder.folded;
}

}  // namespace sinter::nn
