// sinter/ops/pad.hpp: elements added around a tensor, or cut off.
#pragma once

#include <span>

#include "sinter/ops/detail/axis_map.hpp"

namespace sinter {

/// What stands around the elements.
enum class pad_mode {
  constant,   ///< one value
  reflect,    ///< the elements as in a mirror at the first and the last, which do not appear twice
  replicate,  ///< the first and the last element
  circular    ///< the elements from the other end
};

/// How many elements pad adds: in front of and behind the last axis, in front of and behind the axis before it, ...
class pad_amounts {
 public:
  pad_amounts() = default;
  pad_amounts(std::initializer_list<index_t> each) { take(detail::as_written(each.begin()), each.size()); }
  /// Errors: value_error for an odd number of them, or more than two for each axis that a tensor may have.
  template <class Range>
    requires(!std::same_as<Range, pad_amounts> && std::convertible_to<const Range&, std::span<const index_t>>)
  pad_amounts(const Range& range) {  // NOLINT: implicit on purpose
    const std::span<const index_t> each = range;
    take(each.data(), each.size());
  }
  /// The number of axes, which are the last ones.
  int axes() const { return count_ / 2; }
  /// Of an axis counted from the end: 0 for the last.
  index_t before(int axis) const { return axis < axes() ? values_[2 * axis] : 0; }
  index_t after(int axis) const { return axis < axes() ? values_[2 * axis + 1] : 0; }

 private:
  void take(const index_t* each, std::size_t size);

  int count_ = 0;
  index_t values_[std::size_t{2 * max_rank}] = {};
};

#if SINTER_DEFINES

SINTER_SHARED void pad_amounts::take(const index_t* each, std::size_t size) {
  const auto n = static_cast<index_t>(size);
  if (n % 2 != 0 || n > 2 * max_rank)
    detail::refuse<value_error>({"pad: takes two numbers for each axis, the last axis first, not ", n, " numbers"});
  for (index_t i = 0; i < n; ++i) values_[count_++] = each[i];
}

#endif  // SINTER_DEFINES

namespace ops {

constexpr const char* name_of(pad_mode mode) {
  return mode == pad_mode::reflect ? "reflect" : mode == pad_mode::replicate ? "replicate" : "circular";
}
/// y, which is x, becomes the shape of x padded. Errors: as pad's.
SINTER_SHARED void find_padded_shape(const pad_amounts& amounts, pad_mode mode, sinter::detail::shape_piece of_x,
                                     index_t* y);
#if SINTER_DEFINES
SINTER_SHARED void find_padded_shape(const pad_amounts& amounts, pad_mode mode, sinter::detail::shape_piece of_x,
                                     index_t* y) {
  const index_t* const x = of_x.extents;
  const int rank = of_x.rank;
  using sinter::detail::refuse;
  const int axes = amounts.axes();
  if (axes > rank) refuse<shape_error>({"pad: ", 2 * axes, " numbers for the ", rank, " axes of shape ", of_x});
  if (mode != pad_mode::constant && (axes < 1 || axes > 3 || (rank != axes + 1 && rank != axes + 2)))
    refuse<shape_error>({"pad: ", name_of(mode),
                         " pads the last axis of rank 2 or 3, the last two of rank 3 or 4, or the "
                         "last three of rank 4 or 5, not the last ",
                         axes, " of shape ", of_x});
  for (int k = 0; k < axes; ++k) {
    const int d = rank - 1 - k;
    const index_t before = amounts.before(k), after = amounts.after(k), n = x[d];
    y[d] = n + before + after;
    if (y[d] < 0 || n + before < 0 || n + after < 0)
      refuse<shape_error>(
          {"pad: ", before, " and ", after, " cut more off axis ", d, " of shape ", of_x, " than it has"});
    if (mode == pad_mode::constant) continue;
    const index_t most = before > after ? before : after;
    if (mode == pad_mode::reflect && most >= n)
      refuse<shape_error>(
          {"pad: reflect adds less than the ", n, " elements of axis ", d, " of shape ", of_x, ", not ", most});
    if (mode == pad_mode::circular && most > n)
      refuse<shape_error>(
          {"pad: circular adds at most the ", n, " elements of axis ", d, " of shape ", of_x, ", not ", most});
    if (n + (before < 0 ? before : 0) + (after < 0 ? after : 0) < 1)
      refuse<shape_error>(
          {"pad: ", name_of(mode), " needs elements on axis ", d, " of shape ", of_x, ", which are not cut off"});
  }
}
#endif  // SINTER_DEFINES

template <class T>
struct pad_op : resampling_op {
  static constexpr const char* name = "pad";

  pad_amounts amounts;
  pad_mode mode;
  T value;
  pad_op(const pad_amounts& a, pad_mode m, T v) : amounts(a), mode(m), value(v) {}

  template <int R>
  extents<R> shape(const extents<R>& x) const {
    extents<R> y = x;
    find_padded_shape(amounts, mode, {x.data(), R}, y.values);
    return y;
  }

  template <int R>
  axis_map map(int d, const extents<R>& x) const {
    const index_t before = amounts.before(R - 1 - d), after = amounts.after(R - 1 - d), n = x[d];
    axis_map m;
    m.in = n;
    m.out = n + before + after;
    m.before = before;
    if (before <= 0 && after <= 0) return m;
    if (mode == pad_mode::reflect) {
      m.rule = axis_rule::reflect;
      m.period = 2 * (n - 1);
    } else if (mode == pad_mode::replicate) {
      m.rule = axis_rule::replicate;
    } else if (mode == pad_mode::circular) {  // of what is left where a number cuts
      m.rule = axis_rule::circular;
      m.first = before < 0 ? -before : 0;
      m.period = n - m.first + (after < 0 ? after : 0);
      m.before = before < 0 ? 0 : before;
    }
    return m;
  }
  template <class>
  T fill() const {
    return value;
  }

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::fitting<element_of<X>>{};
  }
};

}  // namespace ops

/// x with elements added in front of and behind its last axes, as torch.nn.functional.pad: two numbers for the last
/// axis, two for the one before it, and so on. What is added is `value`, or follows from the elements along the axis,
/// see pad_mode; negative numbers cut off. Any element type. With pad_mode::constant any axes of any rank; with the
/// others the last axis of (N,C,L) or (C,L), the last two of (N,C,H,W) or (C,H,W), or the last three of (N,C,D,H,W) or
/// (C,D,H,W). The result lies in memory as x does. Derivative: each element gets the sum of g where it stands. Errors:
/// value_error for an odd number of numbers, shape_error for more axes than x has, for more elements cut off than there
/// are, and, as in PyTorch, for a mirror of all elements or more and for more than one turn of a circle.
///
///     tensor framed = pad(pictures, {1, 1, 2, 2});  // a column on each side, two rows above and below
///     tensor mirrored = pad(pictures, {1, 1, 2, 2}, pad_mode::reflect);
///     tensor longer = pad(signals, {0, 3}, pad_mode::constant, -1);
template <class X>
  requires detail::takes_operands<ops::pad_op<element_of<X>>, X>
detail::kernel_of<ops::pad_op<element_of<X>>, X> pad(X&& x, const pad_amounts& amounts,
                                                     pad_mode mode = pad_mode::constant,
                                                     detail::number<element_of<X>> value = 0) {
  return detail::make_kernel(ops::pad_op<element_of<X>>(amounts, mode, value), std::forward<X>(x));
}
/// The same, by PyTorch's names.
///
///     tensor mirrored = pad(pictures, {1, 1, 2, 2}, {.mode = pad_mode::reflect});
struct pad_settings {
  [[no_unique_address]] detail::only_by_name first = {};
  pad_mode mode = pad_mode::constant;
  detail::any_number value = 0;
};
template <class X>
  requires detail::takes_operands<ops::pad_op<element_of<X>>, X>
detail::kernel_of<ops::pad_op<element_of<X>>, X> pad(X&& x, const pad_amounts& amounts, const pad_settings& o) {
  return pad(std::forward<X>(x), amounts, o.mode, o.value.template as<element_of<X>>());
}
struct value_without_a_mode;
struct write_pad_mode_constant_before_the_value;
template <expression X, class N, class Problem = value_without_a_mode,
          class Fix = write_pad_mode_constant_before_the_value>
  requires std::is_arithmetic_v<N>
void pad(X&&, const pad_amounts&, N) = delete;
template <class X, class Problem = typename detail::kernel_check<ops::pad_op<element_of<X>>, X>::problem,
          class Fix = typename detail::kernel_check<ops::pad_op<element_of<X>>, X>::fix>
void pad(X&&, const pad_amounts&, pad_mode = pad_mode::constant, double = 0) = delete;
SINTER_OPTION_AS_TEXT(pad, write_pad_mode_reflect_replicate_or_circular, const pad_amounts&)

}  // namespace sinter
