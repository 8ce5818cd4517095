// sinter/cpu/detail/winograd_choice.hpp: which convolutions are computed by Winograd's tiles.
#pragma once

#include <type_traits>

#include "sinter/cpu/detail/winograd_transforms.hpp"
#include "sinter/ops/exact_convolution.hpp"

namespace sinter::cpu_impl::detail {

/// Doubles are for those who want every digit.
template <class T>
inline constexpr bool has_winograd = std::is_same_v<T, float>;

/// What the tiles of an image are multiplied by: the points of weights, made for this call or kept from an earlier one,
/// or those of a gradient.
enum class winograd_use { weights, kept_weights, weight_gradient };

/// What a convolution costs, in multiply-adds of the direct kernels, fitted to measurements with vectors of 8 floats.
/// The constants are on the side of the direct kernels: where they err, little is lost.
struct winograd_costs {
  double pixels, channels, filters;  ///< pixels of the result, of all images

  double direct(int taps) const { return pixels * taps * taps * channels * filters; }

  /// Per tile: the products of its points, and the transforms, which are paid per channel or filter.
  double tiles(const winograd_cut& cut, double tile_count, double per_product) const {
    const double points = cut.points() * cut.points();
    return tile_count * points * (per_product * channels * filters + 9 * (channels + filters));
  }
  /// Points of weights, made or read once.
  double weights(const winograd_cut& cut, double per_point) const {
    return per_point * cut.points() * cut.points() * channels * filters;
  }
};

/// A convolution of two axes with stride 1, of `axes` as those of `patches`, whose results all meet the image: the
/// others would not be zeros but for rounding.
inline bool is_plane_of_stride_1(const conv_axis* axes) {
  const auto plain = [](const conv_axis& a) {
    return a.step == 1 && a.dilation == 1 && a.out > 0 && a.first <= 0 && a.first + a.taps > 0 &&
           a.first + a.out <= a.in;
  };
  return axes[0].taps == 1 && axes[0].in == 1 && axes[0].out == 1 && axes[0].first == 0 && plain(axes[1]) &&
         plain(axes[2]) && axes[1].taps == axes[2].taps && (axes[1].taps == 3 || axes[1].taps == 5);
}

/// The cheapest way to multiply patches of `channels` by the weights of `filters`, or to make the gradient of those
/// weights.
template <class T>
winograd_cut winograd_for(const conv_axis* axes, index_t images, index_t channels, index_t filters, winograd_use use) {
  constexpr index_t fewest = 16;  // no fewer than the lanes of a vector, see square_to_points
  static_assert(fewest >= tile_shape<T>::lanes);
  if (channels < fewest || filters < fewest || !is_plane_of_stride_1(axes) || exact_convolution::now()) return {};
  const winograd_costs costs{static_cast<double>(images * axes[1].out * axes[2].out), static_cast<double>(channels),
                             static_cast<double>(filters)};
  const int taps = static_cast<int>(axes[1].taps);
  const auto cost_of = [&](const winograd_cut& cut) {
    const auto count = static_cast<double>(images * ceil_div(axes[1].out, cut.tile) * ceil_div(axes[2].out, cut.tile));
    if (use == winograd_use::weight_gradient) return costs.tiles(cut, count, 1.25) + costs.weights(cut, 40);
    return costs.tiles(cut, count, 1.1) + costs.weights(cut, use == winograd_use::kept_weights ? 8 : 24);
  };
  const winograd_cut usual{taps == 3 ? 4 : 2, taps}, fine{2, taps};
  const winograd_cut cut = use != winograd_use::weight_gradient && cost_of(fine) < cost_of(usual) ? fine : usual;
  return cost_of(cut) < 0.9 * costs.direct(taps) ? cut : winograd_cut{};
}

}  // namespace sinter::cpu_impl::detail
