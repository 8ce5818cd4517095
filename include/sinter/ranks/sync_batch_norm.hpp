// sinter/ranks/sync_batch_norm.hpp: a batch norm by the moments of the samples of all ranks.
#pragma once

#include <cmath>
#include <optional>

#include "sinter/grad/with_gradient.hpp"
#include "sinter/nn/norm.hpp"
#include "sinter/parallel/merged_moments.hpp"
#include "sinter/ranks/communicator.hpp"

namespace sinter {

// Names in messages.
template <class>
struct module_that_is_no_batch_norm;
struct wrap_nn_batch_norm1d_2d_or_3d;
template <class>
struct sync_batch_norm_over_what_is_no_communicator;
struct write_sync_batch_norm_of_a_communicator_and_a_norm;

namespace nn {

template <communicator C>
inline constexpr bool is_setting<C> = true;

namespace detail {

/// The share of `count` of this rank in all, and the moments (2,C) of all ranks, which merge theirs in their order.
template <class C, class T, device D>
struct moments_of_ranks {
  double count = 0;  ///< of all ranks
  tensor<T, 2, D> all;

  moments_of_ranks(C& ranks, const tensor<T, 2, D>& own, index_t own_count) {
    constexpr index_t base = 4096;  // a count in two parts, which every element type holds exactly
    const index_t channels = own.extent(1), each = 2 * channels + 2;
    const tensor<T, 1, cpu> parts{static_cast<T>(own_count / base), static_cast<T>(own_count % base)};
    auto mine = tensor<T, 1, D>::uninitialized(extents<1>{{each}});
    mine.slice(0, 0, 2 * channels).in_place() = own.flatten();
    mine.slice(0, 2 * channels, each).in_place() = parts.template to<D>();
    const auto gathered = ranks.all_gather(mine, "moments of a sync_batch_norm").get();
    const auto counts = gathered.template to<cpu>();
    merged_moments<T, D> merged;
    for (index_t r = 0; r < ranks.size(); ++r) {
      const T* const parts_of_r = counts.data() + r * each + 2 * channels;
      const auto high = static_cast<double>(parts_of_r[0]), low = static_cast<double>(parts_of_r[1]);
      sinter::detail::require_told(
          high >= 0 && high < 1e15 && std::trunc(high) == high && low >= 0 && low < base && std::trunc(low) == low,
          ranks, static_cast<int>(r), "sync_batch_norm", "of ", high, " times 4096 and ", low,
          " values of each channel");
      const index_t n = static_cast<index_t>(parts_of_r[0]) * base + static_cast<index_t>(parts_of_r[1]);
      if (n == 0) continue;
      const tensor<T, 1, D> of_r = gathered.slice(0, r * each, r * each + 2 * channels);
      merged.add(n, of_r.reshape({2, channels}));
    }
    count = merged.count;
    all = merged.moments(channels);
  }
};

/// The merged moments as a function of this rank's. With n of N elements of a channel here, mean m here and M of all,
/// and gradients a and b of mean and variance, summed over the ranks:
/// dmean = n / N (a + 2 b (m - M)), dvariance = n / N b.
template <class C, class Own>
auto merged_over_ranks(C& ranks, const Own& own, index_t own_count, double& count) {
  const auto merge = with_gradient(
      [&ranks, &count, own_count](const auto& x) {
        const moments_of_ranks merged(ranks, x, own_count);
        count = merged.count;
        const double share = merged.count > 0 ? static_cast<double>(own_count) / merged.count : 0;
        return with_saved(merged.all, x, merged.all, share, ranks);
      },
      [](const auto& g, const auto& x, const auto& all, double share, const C& through) {
        using T = element_of<decltype(x)>;
        C again = through;
        const auto sums = again.all_reduce(g.clone().flatten(), reduction::sum, "gradients of a sync_batch_norm").get();
        const auto dx = zeros<T, device_of<decltype(x)>>(x.shape());
        if (share > 0) {
          const auto both = sums.reshape({2, x.extent(1)});
          const auto w = static_cast<T>(share);
          dx[0].in_place() = w * (both[0] + 2 * both[1] * (x[0] - all[0]));
          dx[1].in_place() = w * both[1];
        }
        return dx;
      },
      "sync_batch_norm");
  return eval(merge(own));
}

template <class M>
concept is_batch_norm = requires { M::is_affine&& M::keeps_running_moments; };

template <class C, class Norm>
constexpr auto find_sync_mistake() {
  using sinter::detail::mistake;
  if constexpr (!communicator<C>)
    return mistake<sync_batch_norm_over_what_is_no_communicator<C>,
                   write_sync_batch_norm_of_a_communicator_and_a_norm>{};
  else if constexpr (!is_batch_norm<Norm>)
    return mistake<module_that_is_no_batch_norm<Norm>, wrap_nn_batch_norm1d_2d_or_3d>{};
  else if constexpr (!C::template reaches<device_of<Norm>>)
    return mistake<communicator_does_not_reach<device_of<Norm>>, pass_a_communicator_that_reaches_it_as_well>{};
  else return sinter::detail::fitting<Norm>{};
}
template <class C, class Norm>
using sync_mistake = decltype(find_sync_mistake<C, Norm>());

}  // namespace detail

/// What is no sync_batch_norm; its constructor says why.
template <class C, class Norm>
struct sync_batch_norm {
  template <class Problem = typename detail::sync_mistake<C, Norm>::problem,
            class Fix = typename detail::sync_mistake<C, Norm>::fix>
  sync_batch_norm(const C&, const Norm&) = delete;
};
template <class C, class Norm>
sync_batch_norm(const C&, Norm) -> sync_batch_norm<C, Norm>;

/// A batch norm that trains by the moments of the samples of all ranks, as torch.nn.SyncBatchNorm: ranks that have a
/// part of a batch each compute what one rank with all of it would. Parameters, buffers and their names are those of
/// the batch norm. In training all ranks call it in the same step, forward and backward; one without samples calls it
/// with an x (0,C,...), else the others fail with a mismatch or a timeout. So in run() of distributed all ranks need
/// equally many batches. Errors: those of batch_norm; shape_error where all ranks together have one value a channel;
/// communication_error.
///
///     nn::sequential block{nn::conv2d(3, 16, 3, gen), nn::sync_batch_norm(world, nn::batch_norm2d(16)), nn::relu()};
template <communicator C, is_module Norm>
struct sync_batch_norm<C, Norm> : module<sync_batch_norm<C, Norm>> {
  using device_type = device_of<Norm>;
  using kind = typename Norm::kind;
  template <class D, class Kind>
  using rebind = sync_batch_norm<C, typename Norm::template rebind<D, Kind>>;

  sync_batch_norm() = default;
  sync_batch_norm(const C& world, Norm wrapped)
    requires(sinter::detail::is_fitting<detail::sync_mistake<C, Norm>>)
      : norm(std::move(wrapped)), ranks(world) {}
  template <class M = Norm, class Problem = typename detail::sync_mistake<C, M>::problem,
            class Fix = typename detail::sync_mistake<C, M>::fix>
  sync_batch_norm(const C&, Norm) = delete;

  Norm norm;
  std::optional<C> ranks;

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    Norm::visit(f, m.norm...);
    f("ranks", m.ranks...);
  }

  template <class X>
  static constexpr auto mistake() {
    return Norm::template mistake<X>();
  }
  template <class X>
  auto forward(X&& operand) const {
    if constexpr (std::is_same_v<kind, plain>) {
      return norm(std::forward<X>(operand));
    } else {
      const auto x = eval(std::forward<X>(operand));
      const auto moments = moments_for(x);
      if constexpr (Norm::is_affine)
        return sinter::detail::normalised_channels(x, moments, norm.settings.eps, norm.weight, norm.bias);
      else return sinter::detail::normalised_channels(x, moments, norm.settings.eps);
    }
  }

 private:
  /// As batch_norm takes them, but of all ranks.
  template <class X>
  auto moments_for(const X& x) const {
    using both = detail::bare<decltype(eval(batch_moments(x)))>;
    using one = detail::bare<decltype(std::declval<const both&>()[0])>;
    using result = sinter::detail::channel_moments<one>;
    sinter::detail::check_channel_operand("sync_batch_norm", "running mean", x, norm.running_mean.value());
    if constexpr (Norm::keeps_running_moments) {
      if (!norm.state.training) {
        const no_grad untracked;
        return result{one(norm.running_mean.value()), one(norm.running_var.value())};
      }
    }
    const index_t channels = x.extent(1), count = channels > 0 ? x.numel() / channels : 0;
    C through = *ranks;
    double of_all = 0;
    const both now = detail::merged_over_ranks(through, eval(batch_moments(x)), count, of_all);
    if (norm.state.training && of_all == 1)
      sinter::detail::refuse<shape_error>(
          {"sync_batch_norm: all ranks together have one value for each channel, which has no variance to train with"});
    if constexpr (Norm::keeps_running_moments) {
      if (of_all > 0) {
        const no_grad untracked;
        sinter::detail::move_running(norm.running_mean.value(), norm.running_var.value(), sinter::detail::untrack(now),
                                     norm.next_momentum(), static_cast<index_t>(of_all));
      }
    }
    return result{now[0], now[1]};
  }
};

}  // namespace nn
}  // namespace sinter
