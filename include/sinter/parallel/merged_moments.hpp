// sinter/parallel/merged_moments.hpp: the moments of a batch from those of its parts.
#pragma once

#include <limits>

#include "sinter/core/create.hpp"
#include "sinter/ops/add.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ops/subtract.hpp"

namespace sinter::nn::detail {

/// Mean and variance of every channel, merged from parts one after the other: Chan, Golub, LeVeque, 1979.
template <class C, device D>
struct merged_moments {
  double count = 0;
  tensor<C, 1, D> mean, distances;  ///< and the sum of squared distances from the mean

  /// Adds `n` values of each channel, with mean and variance of shape (2,C).
  void add(index_t n, const tensor<C, 2, D>& moments) {
    const double now = static_cast<double>(n), total = count + now;
    if (count == 0) {
      mean = moments[0].clone();
      distances = moments[1] * static_cast<C>(now);
    } else {
      const tensor<C, 1, D> step = moments[0] - mean;
      distances += moments[1] * static_cast<C>(now) + step * step * static_cast<C>(count * now / total);
      mean += step * static_cast<C>(now / total);
    }
    count = total;
  }
  /// (2,C): mean and biased variance; NaN where there are no values.
  tensor<C, 2, D> moments(index_t channels) const {
    const auto both = full<C, D>(extents<2>{{2, channels}}, std::numeric_limits<double>::quiet_NaN());
    if (count == 0) return both;
    both[0].in_place() = mean;
    both[1].in_place() = distances * static_cast<C>(1 / count);
    return both;
  }
};

}  // namespace sinter::nn::detail
