// sinter/ops/window.hpp: the numbers that say how a window moves over spatial axes.
#pragma once

#include <concepts>
#include <initializer_list>

#include "sinter/core/concepts.hpp"
#include "sinter/core/number.hpp"
#include "sinter/core/shape.hpp"

namespace sinter {

/// A number for each of N spatial axes, or one for all.
template <int N>
class per_axis {
 public:
  template <std::integral I>
  per_axis(I all) {  // NOLINT: implicit on purpose
    for (index_t& v : values_) v = detail::as_written<index_t>(detail::whole(all));
  }
  /// Errors: value_error unless there are N.
  per_axis(std::initializer_list<index_t> each) {
    if (static_cast<int>(each.size()) != N)
      detail::refuse<value_error>(
          {"a window over ", N, " axes takes one number or ", N, ", not ", static_cast<index_t>(each.size())});
    const index_t* const from = detail::as_written(each.begin());
    for (int d = 0; d < N; ++d) values_[d] = from[d];
  }
  index_t operator[](int axis) const { return values_[axis]; }

 private:
  index_t values_[std::size_t{N}];
};

namespace padding {
/// As many results as elements, for a stride of 1: where the zeros are odd in number, one more lies behind.
struct same_t {};
/// No zeros.
struct valid_t {};
inline constexpr same_t same{};
inline constexpr valid_t valid{};
}  // namespace padding

/// Zeros around the spatial axes: numbers, padding::same, or padding::valid.
template <int N>
class window_padding {
 public:
  template <std::integral I>
  window_padding(I all) : values_(all) {}  // NOLINT: implicit on purpose
  window_padding(std::initializer_list<index_t> each) : values_(each) {}
  window_padding(const per_axis<N>& each) : values_(each) {}  // NOLINT: implicit on purpose
  template <std::convertible_to<const char*> Text, class Problem = option_that_is_text,
            class Fix = write_padding_same_or_padding_valid>
  window_padding(const Text&) = delete;
  window_padding(padding::same_t) : values_(0), same_(true) {}  // NOLINT: implicit on purpose
  window_padding(padding::valid_t) : values_(0) {}              // NOLINT: implicit on purpose

  /// Zeros in front of an axis, for taps that lie `span` apart from first to last.
  index_t before(int axis, index_t span) const { return same_ ? span / 2 : values_[axis]; }
  /// Those behind it.
  index_t after(int axis, index_t span) const { return same_ ? span - span / 2 : values_[axis]; }
  /// The zeros on each side of an axis, of an op that takes numbers only. Errors: value_error.
  index_t number(const char* op, int axis) const {
    if (same_) detail::refuse<value_error>({op, ": padding::same is not for this op; give numbers"});
    if (values_[axis] < 0)
      detail::refuse<value_error>({op, ": padding is ", values_[axis], "; it must not be negative"});
    return values_[axis];
  }
  /// The number of results along an axis of `extent` elements. Errors: as conv2d's.
  template <int R>
  index_t results(const char* op, int axis, index_t extent, index_t reach, index_t stride, const extents<R>& x) const {
    if (same_) {
      if (stride != 1) detail::refuse<value_error>({op, ": padding::same is for a stride of 1, not ", stride});
      return extent;
    }
    const index_t zeros = number(op, axis);
    if (extent + 2 * zeros < reach)
      detail::refuse<shape_error>({op, ": a window of ", reach, " elements is larger than axis ", axis + 2,
                                   " of x of shape ", x, " with padding ", zeros});
    return (extent + 2 * zeros - reach) / stride + 1;
  }

 private:
  per_axis<N> values_;
  bool same_ = false;
};

namespace detail {

/// Errors: value_error for a stride or dilation below 1.
SINTER_SHARED void check_window(const char* op, index_t stride, index_t dilation);
#if SINTER_DEFINES
SINTER_SHARED void check_window(const char* op, index_t stride, index_t dilation) {
  if (stride < 1) refuse<value_error>({op, ": stride is ", stride, "; it must be 1 or more"});
  if (dilation < 1) refuse<value_error>({op, ": dilation is ", dilation, "; it must be 1 or more"});
}
#endif  // SINTER_DEFINES
template <int N>
void check_window(const char* op, const per_axis<N>& stride, const per_axis<N>& dilation) {
  for (int d = 0; d < N; ++d) check_window(op, stride[d], dilation[d]);
}

}  // namespace detail
}  // namespace sinter
