// sinter/nn/norm.hpp: layers that normalise.
#pragma once

#include <optional>

#include "sinter/nn/buffer.hpp"
#include "sinter/nn/linear.hpp"
#include "sinter/ops/group_norm.hpp"
#include "sinter/ops/rms_norm.hpp"

namespace sinter::nn {

/// As last argument of a norm: without weight and bias, or with them where the default is without.
struct no_affine_t {};
inline constexpr no_affine_t no_affine{};
struct affine_t {};
inline constexpr affine_t affine{};
/// As last argument of a batch norm: without running mean and variance, which takes those of the batch always.
struct no_running_moments_t {};
inline constexpr no_running_moments_t no_running_moments{};

/// As in torch.nn.BatchNorm2d.
struct batch_norm_settings {
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  ///< std::nullopt: running moments are the averages of all batches
};
template <>
inline constexpr bool is_setting<batch_norm_settings> = true;

namespace detail {

SINTER_SHARED_COLD void check_channels(index_t channels, double eps);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_channels(index_t channels, double eps) {
  if (channels < 0)
    sinter::detail::refuse<shape_error>({"batch_norm: ", channels, " channels; there may not be fewer than 0"});
  sinter::detail::checked_eps("batch_norm", eps);
}
#endif  // SINTER_DEFINES

/// Batch norm of operands of rank Least to Most; see batch_norm2d.
template <int Least, int Most, class Self, floating_element T, device D, class Kind, bool Affine, bool Running>
struct batch_norm : module<Self> {
  using device_type = D;
  using kind = Kind;
  using moment = compute_type<T>;
  static constexpr bool is_affine = Affine, keeps_running_moments = Running;

  batch_norm() = default;
  explicit batch_norm(index_t channels, const batch_norm_settings& how = {}) : settings(how) {
    check_channels(channels, how.eps);
    const extents<1> each{{channels}};
    if constexpr (Affine) {
      weight = ones<T, D>(each);
      bias = zeros<T, D>(each);
    }
    if constexpr (Running) {
      running_mean = zeros<moment, D>(each);
      running_var = ones<moment, D>(each);
      num_batches_tracked = zeros<std::int64_t, D>(extents<0>{});
    }
  }

  template <class X>
  static constexpr auto mistake() {
    if constexpr (rank_of<X> < Least || rank_of<X> > Most)
      return sinter::detail::mistake<operands_of_ranks<rank_of<X>>, use_an_operand_of_rank<Least, Most>>{};
    else return sinter::detail::channel_operand_mistake<X, tensor<T, 1, D>>{};
  }
  template <class X>
  auto forward(X&& x) const {
    batch_norm_options o{.eps = settings.eps};
    if constexpr (!std::is_same_v<Kind, plain>) {
      o.training = state.training;
      if constexpr (Running) {
        if (o.training) o.momentum = next_momentum();
      }
    }
    if constexpr (Affine)
      return sinter::batch_norm(std::forward<X>(x), running_mean.value(), running_var.value(), weight, bias, o);
    else return sinter::batch_norm(std::forward<X>(x), running_mean.value(), running_var.value(), o);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    if constexpr (Affine) {
      f("weight", m.weight...);
      f("bias", m.bias...);
    }
    if constexpr (Running) {
      f("running_mean", m.running_mean...);
      f("running_var", m.running_var...);
      f("num_batches_tracked", m.num_batches_tracked...);
    }
    f("settings", m.settings...);
    f("mode", m.state...);
  }

  parameter<T, 1, D, Kind> weight, bias;
  buffer<moment, 1, D> running_mean, running_var;
  buffer<std::int64_t, 0, D> num_batches_tracked;
  batch_norm_settings settings;
  mode state;

  /// Counts a batch, and gives its part in the new running moments.
  double next_momentum() const {
    num_batches_tracked.value().in_place() += 1;
    if (settings.momentum) return *settings.momentum;
    return 1 / static_cast<double>(num_batches_tracked.value().item());
  }
};

}  // namespace detail

/// Batch norm of pictures, (N,C,H,W) => (N,C,H,W), as torch.nn.BatchNorm2d: parameters weight and bias (C), buffers
/// running_mean, running_var (C), of float where T is half or bfloat16, and num_batches_tracked (). train() normalises
/// by the moments of the batch and moves the running ones, eval() and infer() normalise by these. See
/// sinter::batch_norm.
///
///     nn::batch_norm2d norm(64);
///     nn::batch_norm2d slow(64, {.momentum = 0.01});
///     nn::batch_norm2d bare(64, {}, nn::no_affine);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = true, bool Running = true>
struct batch_norm2d : detail::batch_norm<4, 4, batch_norm2d<T, D, Kind, Affine, Running>, T, D, Kind, Affine, Running> {
  template <class To, class K>
  using rebind = batch_norm2d<T, To, K, Affine, Running>;
  using base = detail::batch_norm<4, 4, batch_norm2d, T, D, Kind, Affine, Running>;

  batch_norm2d() = default;
  explicit batch_norm2d(index_t channels, const batch_norm_settings& how = {}) : base(channels, how) {}
  batch_norm2d(index_t channels, const batch_norm_settings& how, no_affine_t)
    requires(!Affine)
      : base(channels, how) {}
  batch_norm2d(index_t channels, const batch_norm_settings& how, no_running_moments_t)
    requires(!Running)
      : base(channels, how) {}
};
batch_norm2d(index_t) -> batch_norm2d<float, cpu, tracked, true, true>;
batch_norm2d(index_t, const batch_norm_settings&) -> batch_norm2d<float, cpu, tracked, true, true>;
batch_norm2d(index_t, const batch_norm_settings&, no_affine_t) -> batch_norm2d<float, cpu, tracked, false, true>;
batch_norm2d(index_t, const batch_norm_settings&, no_running_moments_t)
    -> batch_norm2d<float, cpu, tracked, true, false>;

/// Batch norm of (N,C) or (N,C,L), as torch.nn.BatchNorm1d; see batch_norm2d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = true, bool Running = true>
struct batch_norm1d : detail::batch_norm<2, 3, batch_norm1d<T, D, Kind, Affine, Running>, T, D, Kind, Affine, Running> {
  template <class To, class K>
  using rebind = batch_norm1d<T, To, K, Affine, Running>;
  using base = detail::batch_norm<2, 3, batch_norm1d, T, D, Kind, Affine, Running>;

  batch_norm1d() = default;
  explicit batch_norm1d(index_t channels, const batch_norm_settings& how = {}) : base(channels, how) {}
  batch_norm1d(index_t channels, const batch_norm_settings& how, no_affine_t)
    requires(!Affine)
      : base(channels, how) {}
  batch_norm1d(index_t channels, const batch_norm_settings& how, no_running_moments_t)
    requires(!Running)
      : base(channels, how) {}
};
batch_norm1d(index_t) -> batch_norm1d<float, cpu, tracked, true, true>;
batch_norm1d(index_t, const batch_norm_settings&) -> batch_norm1d<float, cpu, tracked, true, true>;
batch_norm1d(index_t, const batch_norm_settings&, no_affine_t) -> batch_norm1d<float, cpu, tracked, false, true>;
batch_norm1d(index_t, const batch_norm_settings&, no_running_moments_t)
    -> batch_norm1d<float, cpu, tracked, true, false>;

/// Batch norm of (N,C,D,H,W), as torch.nn.BatchNorm3d; see batch_norm2d.
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = true, bool Running = true>
struct batch_norm3d : detail::batch_norm<5, 5, batch_norm3d<T, D, Kind, Affine, Running>, T, D, Kind, Affine, Running> {
  template <class To, class K>
  using rebind = batch_norm3d<T, To, K, Affine, Running>;
  using base = detail::batch_norm<5, 5, batch_norm3d, T, D, Kind, Affine, Running>;

  batch_norm3d() = default;
  explicit batch_norm3d(index_t channels, const batch_norm_settings& how = {}) : base(channels, how) {}
  batch_norm3d(index_t channels, const batch_norm_settings& how, no_affine_t)
    requires(!Affine)
      : base(channels, how) {}
  batch_norm3d(index_t channels, const batch_norm_settings& how, no_running_moments_t)
    requires(!Running)
      : base(channels, how) {}
};
batch_norm3d(index_t) -> batch_norm3d<float, cpu, tracked, true, true>;
batch_norm3d(index_t, const batch_norm_settings&) -> batch_norm3d<float, cpu, tracked, true, true>;
batch_norm3d(index_t, const batch_norm_settings&, no_affine_t) -> batch_norm3d<float, cpu, tracked, false, true>;
batch_norm3d(index_t, const batch_norm_settings&, no_running_moments_t)
    -> batch_norm3d<float, cpu, tracked, true, false>;

namespace detail {

/// The weight and bias of a norm, both of one shape: one number for each channel, or for each element of a row.
template <class Self, floating_element T, device D, class Kind, bool Affine, bool Bias = Affine, int Axes = 1>
struct affine_norm : module<Self> {
  static_assert(Affine || !Bias, "sinter: a norm has no bias without a weight");
  using device_type = D;
  using kind = Kind;

  affine_norm() = default;
  affine_norm(const char* name, const extents<Axes>& features, double epsilon)
      : eps(sinter::detail::checked_eps(name, epsilon)) {
    for (const index_t n : features)
      if (n < 0) sinter::detail::refuse<shape_error>({name, ": ", n, " features; there may not be fewer than 0"});
    if constexpr (Affine) weight = ones<T, D>(features);
    if constexpr (Bias) bias = zeros<T, D>(features);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    if constexpr (Affine) f("weight", m.weight...);
    if constexpr (Bias) f("bias", m.bias...);
    f("eps", m.eps...);
    if constexpr (requires { (m.groups, ...); }) f("groups", m.groups...);
    if constexpr (requires { (m.features, ...); }) f("features", m.features...);
  }

  parameter<T, Axes, D, Kind> weight, bias;
  double eps = 1e-5;
};

}  // namespace detail

/// Group norm of (N,C,...) as torch.nn.GroupNorm, with weight and bias (C); see sinter::group_norm.
///
///     nn::group_norm norm(4, 64);  // 4 groups of 16 channels
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = true>
struct group_norm : detail::affine_norm<group_norm<T, D, Kind, Affine>, T, D, Kind, Affine> {
  template <class To, class K>
  using rebind = group_norm<T, To, K, Affine>;
  using base = detail::affine_norm<group_norm, T, D, Kind, Affine>;

  group_norm() = default;
  group_norm(index_t group_count, index_t channels, double epsilon = 1e-5)
      : base("group_norm", {{channels}}, epsilon), groups(group_count) {
    if (groups < 1 || channels % groups != 0)
      sinter::detail::refuse<shape_error>({"group_norm: ", groups, " groups do not divide ", channels, " channels"});
  }
  group_norm(index_t group_count, index_t channels, double epsilon, no_affine_t)
    requires(!Affine)
      : group_norm(group_count, channels, epsilon) {}

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::channel_operand_mistake<X, tensor<T, 1, D>>{};
  }
  template <class X>
  auto forward(X&& x) const {
    if constexpr (Affine) return sinter::group_norm(std::forward<X>(x), groups, this->weight, this->bias, this->eps);
    else return sinter::group_norm(std::forward<X>(x), groups, this->eps);
  }

  index_t groups = 1;
};
group_norm(index_t, index_t) -> group_norm<float, cpu, tracked, true>;
group_norm(index_t, index_t, double) -> group_norm<float, cpu, tracked, true>;
group_norm(index_t, index_t, double, no_affine_t) -> group_norm<float, cpu, tracked, false>;

/// Instance norm of (N,C,...) as torch.nn.InstanceNorm1d to 3d without running moments: no parameters, unless
/// nn::affine asks for weight and bias (C). See sinter::instance_norm.
///
///     nn::instance_norm norm(64);
///     nn::instance_norm scaled(64, 1e-5, nn::affine);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = false>
struct instance_norm : detail::affine_norm<instance_norm<T, D, Kind, Affine>, T, D, Kind, Affine> {
  template <class To, class K>
  using rebind = instance_norm<T, To, K, Affine>;
  using base = detail::affine_norm<instance_norm, T, D, Kind, Affine>;

  instance_norm() = default;
  explicit instance_norm(index_t channels, double epsilon = 1e-5) : base("instance_norm", {{channels}}, epsilon) {}
  instance_norm(index_t channels, double epsilon, affine_t)
    requires(Affine)
      : instance_norm(channels, epsilon) {}

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::channel_operand_mistake<X, tensor<T, 1, D>>{};
  }
  template <class X>
  auto forward(X&& x) const {
    if constexpr (Affine) return sinter::instance_norm(std::forward<X>(x), this->weight, this->bias, this->eps);
    else return sinter::instance_norm(std::forward<X>(x), this->eps);
  }
};
instance_norm(index_t) -> instance_norm<float, cpu, tracked, false>;
instance_norm(index_t, double) -> instance_norm<float, cpu, tracked, false>;
instance_norm(index_t, double, affine_t) -> instance_norm<float, cpu, tracked, true>;

/// What layer_norm and rms_norm take, by PyTorch's name: `nn::layer_norm norm(256, {.eps = 1e-6})`.
struct norm_options {
  [[no_unique_address]] sinter::detail::only_by_name first = {};
  double eps = 1e-5;
};
struct rms_norm_options {
  [[no_unique_address]] sinter::detail::only_by_name first = {};
  double eps = 1e-6;
};

/// Layer norm of the last axes as torch.nn.LayerNorm, with weight and bias of the shape of these; see
/// sinter::layer_norm.
///
///     nn::layer_norm norm(256);
///     nn::layer_norm pictures({3, 8, 8});                   // rows are the last three axes
///     nn::layer_norm scaled(256, 1e-5, nn::no_bias);        // a weight only
///     nn::layer_norm bare({8, 8}, 1e-5, nn::no_affine);
template <floating_element T = float, device D = cpu, class Kind = tracked, bool Affine = true, bool Bias = Affine,
          int Axes = 1>
struct layer_norm : detail::affine_norm<layer_norm<T, D, Kind, Affine, Bias, Axes>, T, D, Kind, Affine, Bias, Axes> {
  template <class To, class K>
  using rebind = layer_norm<T, To, K, Affine, Bias, Axes>;
  using base = detail::affine_norm<layer_norm, T, D, Kind, Affine, Bias, Axes>;

  layer_norm() = default;
  explicit layer_norm(index_t n, const norm_options& o = {})
    requires(Axes == 1)
      : layer_norm(extents<1>{{n}}, o.eps) {}
  template <class Eps>
    requires(Axes == 1 && std::is_arithmetic_v<Eps>)
  layer_norm(index_t n, Eps epsilon) : layer_norm(extents<1>{{n}}, epsilon) {}
  layer_norm(index_t n, double epsilon, no_affine_t)
    requires(Axes == 1 && !Affine)
      : layer_norm(n, epsilon) {}
  layer_norm(index_t n, double epsilon, no_bias_t)
    requires(Axes == 1 && Affine && !Bias)
      : layer_norm(n, epsilon) {}
  explicit layer_norm(const index_t (&shape)[std::size_t{Axes}], const norm_options& o = {})
    requires(Axes > 1)
      : layer_norm(sinter::detail::to_extents(shape), o.eps) {}
  template <class Eps>
    requires(Axes > 1 && std::is_arithmetic_v<Eps>)
  layer_norm(const index_t (&shape)[std::size_t{Axes}], Eps epsilon)
      : layer_norm(sinter::detail::to_extents(shape), epsilon) {}
  layer_norm(const index_t (&shape)[std::size_t{Axes}], double epsilon, no_affine_t)
    requires(Axes > 1 && !Affine)
      : layer_norm(shape, epsilon) {}
  layer_norm(const index_t (&shape)[std::size_t{Axes}], double epsilon, no_bias_t)
    requires(Axes > 1 && Affine && !Bias)
      : layer_norm(shape, epsilon) {}
  explicit layer_norm(const extents<Axes>& shape) : layer_norm(shape, norm_options().eps) {}
  template <class Eps>
    requires std::is_arithmetic_v<Eps>
  layer_norm(const extents<Axes>& shape, Eps epsilon)
      : base("layer_norm", shape, static_cast<double>(epsilon)), features(shape) {}

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::row_norm_mistake<ops::layer_norm_op, X, tensor<T, Axes, D>>{};
  }
  template <class X>
  auto forward(X&& x) const {
    if constexpr (Bias) return sinter::layer_norm(std::forward<X>(x), this->weight, this->bias, this->eps);
    else if constexpr (Affine) return sinter::layer_norm(std::forward<X>(x), this->weight, this->eps);
    else return sinter::layer_norm(std::forward<X>(x), features, this->eps);
  }

  extents<Axes> features{};
};
layer_norm(index_t) -> layer_norm<>;
layer_norm(index_t, double) -> layer_norm<>;
layer_norm(index_t, norm_options) -> layer_norm<>;
template <std::size_t K>
layer_norm(const index_t (&)[K], norm_options) -> layer_norm<float, cpu, tracked, true, true, int{K}>;
layer_norm(index_t, double, no_affine_t) -> layer_norm<float, cpu, tracked, false>;
layer_norm(index_t, double, no_bias_t) -> layer_norm<float, cpu, tracked, true, false>;
template <std::size_t K>
layer_norm(const index_t (&)[K]) -> layer_norm<float, cpu, tracked, true, true, int{K}>;
template <std::size_t K>
layer_norm(const index_t (&)[K], double) -> layer_norm<float, cpu, tracked, true, true, int{K}>;
template <std::size_t K>
layer_norm(const index_t (&)[K], double, no_affine_t) -> layer_norm<float, cpu, tracked, false, false, int{K}>;
template <std::size_t K>
layer_norm(const index_t (&)[K], double, no_bias_t) -> layer_norm<float, cpu, tracked, true, false, int{K}>;

/// x / sqrt(mean(x^2) + eps) along the last axis, times a weight that begins as 1: torch.nn.RMSNorm of one axis, whose
/// default eps is 1.19e-7 for float. See sinter::rms_norm.
///
///     nn::rms_norm norm(256);
template <floating_element T = float, device D = cpu, class Kind = tracked>
struct rms_norm : detail::affine_norm<rms_norm<T, D, Kind>, T, D, Kind, true, false> {
  template <class To, class K>
  using rebind = rms_norm<T, To, K>;
  using base = detail::affine_norm<rms_norm, T, D, Kind, true, false>;

  rms_norm() = default;
  explicit rms_norm(index_t n, const rms_norm_options& o = {}) : base("rms_norm", {{n}}, o.eps) {}
  template <class Eps>
    requires std::is_arithmetic_v<Eps>
  rms_norm(index_t n, Eps epsilon) : rms_norm(n, rms_norm_options{.eps = static_cast<double>(epsilon)}) {}

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::row_norm_mistake<ops::rms_norm_op, X, tensor<T, 1, D>>{};
  }
  template <class X>
  auto forward(X&& x) const {
    return sinter::rms_norm(std::forward<X>(x), this->weight, this->eps);
  }
};
rms_norm(index_t) -> rms_norm<>;
rms_norm(index_t, double) -> rms_norm<>;
rms_norm(index_t, rms_norm_options) -> rms_norm<>;

}  // namespace sinter::nn
