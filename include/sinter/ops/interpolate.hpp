// sinter/ops/interpolate.hpp: images of another size.
#pragma once

#include "sinter/ops/detail/axis_map.hpp"

namespace sinter {

/// How the elements of a resized image are made.
enum class interpolation {
  nearest,        ///< the element at floor(o in / out)
  nearest_exact,  ///< the element at floor((o + 1/2) in / out)
  linear,         ///< of the two nearest elements, of (N,C,L)
  bilinear,       ///< of the four nearest, of (N,C,H,W)
  trilinear,      ///< of the eight nearest, of (N,C,D,H,W)
  bicubic,        ///< of the sixteen nearest, of (N,C,H,W)
  area            ///< the mean of all elements that a result has a part of, as adaptive_avg_pool
};

/// Where the elements of a result lie between those of an image, by ONNX's names.
enum class pixel_places {
  of_mode,               ///< as in PyTorch
  half_pixel,            ///< middles on middles of parts of the image
  pytorch_half_pixel,    ///< the same, but the first element for a result of one
  half_pixel_symmetric,  ///< the same, around the middle of the image where scale_factor leaves a rest
  asymmetric,            ///< the first on the first
  align_corners          ///< the first on the first, the last on the last
};

/// A number for all spatial axes, one for each, or none.
template <class T>
class axis_numbers {
 public:
  axis_numbers() = default;
  template <class A>
    requires std::is_arithmetic_v<A> && (std::is_integral_v<A> || !std::is_integral_v<T>)
  axis_numbers(A all) : count_(1), values_{static_cast<T>(all)} {}  // NOLINT: implicit on purpose
  /// Errors: value_error for more than three.
  axis_numbers(std::initializer_list<T> each) {
    if (each.size() > 3)
      detail::refuse<value_error>(
          {"interpolate: ", static_cast<index_t>(each.size()), " numbers; there are three spatial axes at most"});
    const T* const from = detail::as_written(each.begin());
    for (std::size_t i = 0; i < each.size(); ++i) values_[count_++] = from[i];
  }
  bool given() const { return count_ > 0; }
  int count() const { return count_; }
  T operator[](int axis) const { return values_[count_ == 1 ? 0 : axis]; }

 private:
  int count_ = 0;
  T values_[3] = {};
};

/// The size of a resized image, or how many times the old one it is, and how its elements are made.
///
///     interpolate(x, {.size = {64, 48}});
///     interpolate(x, {.scale_factor = 2, .mode = interpolation::bilinear, .align_corners = true});
struct write_interpolation_bilinear_or_another;  // in messages
/// An interpolation that is given as an option.
struct interpolation_option {
  interpolation value;
  constexpr interpolation_option(interpolation mode) : value(mode) {}  // NOLINT: implicit on purpose
  template <std::convertible_to<const char*> Text, class Problem = option_that_is_text,
            class Fix = write_interpolation_bilinear_or_another>
  interpolation_option(const Text&) = delete;
  constexpr operator interpolation() const { return value; }  // NOLINT: implicit on purpose
};

struct interpolate_options {
  axis_numbers<index_t> size = {};
  axis_numbers<double> scale_factor = {};
  interpolation_option mode = interpolation::nearest;
  bool align_corners = false;  ///< first and last elements lie on first and last elements; not of the nearest
  bool antialias = false;      ///< of bilinear and bicubic: a smaller image is made of all elements, not of the nearest

  // As ONNX's operator Resize has them.
  pixel_places places = pixel_places::of_mode;                 ///< other places than PyTorch's
  pixel_rounding nearest_mode = pixel_rounding::prefer_floor;  ///< which element is the nearest to these
  double cubic_coeff_a = -0.75;                                ///< of bicubic without antialias
  bool exclude_outside = false;                                ///< of bicubic: elements outside count nothing
};

namespace ops {

struct interpolate_op : resampling_op {
  static constexpr const char* name = "interpolate";

  interpolate_options options;
  explicit interpolate_op(const interpolate_options& o) : options(o) {}

  template <int R>
  extents<R> shape(const extents<R>& x) const {
    using sinter::detail::refuse;
    check_options(R - 2);
    extents<R> y = x;
    for (int d = 2; d < R; ++d) {
      y[d] = options.size.given() ? options.size[d - 2]
                                  : static_cast<index_t>(static_cast<double>(x[d]) * options.scale_factor[d - 2]);
      if (x[d] < 1 || y[d] < 1)
        refuse<shape_error>({"interpolate: axis ", d, " of shape ", x, " would have ", y[d],
                             " elements; there must be at least one before and after"});
    }
    return y;
  }

  /// How scale and corners enter positions: as in PyTorch with recompute_scale_factor = False.
  template <int R>
  axis_map map(int d, const extents<R>& x) const {
    axis_map m;
    const extents<R> y = shape(x);
    m.in = x[d];
    m.out = y[d];
    if (d < 2 || (x == y && options.places == pixel_places::of_mode)) return m;
    const auto in = static_cast<double>(m.in), out = static_cast<double>(m.out);
    m.scale = options.size.given() ? in / out : 1 / options.scale_factor[d - 2];
    m.shift = 0.5;
    m.a = options.antialias ? -0.5 : options.cubic_coeff_a;
    m.drops_outside = options.exclude_outside;
    if (options.places != pixel_places::of_mode)
      return placed(m, options.size.given() ? out : in * options.scale_factor[d - 2]);
    switch (options.mode) {
      case interpolation::nearest:
        if (m.in == m.out) return m;
        m.rule = axis_rule::nearest;
        m.shift = 0;
        if (m.out == 2 * m.in) m.scale = 0.5;
        return m;
      case interpolation::nearest_exact:
        m.rule = axis_rule::nearest_exact;
        return m;
      case interpolation::area:
        if (m.in == m.out) return m;
        m.rule = axis_rule::area;
        m.scale = in / out;
        return m;
      case interpolation::bicubic:
        if (options.antialias && m.in == m.out) return m;
        m.rule = options.antialias ? axis_rule::wide_cubic : axis_rule::cubic;
        break;
      default:
        if (m.in == m.out) return m;
        m.rule = options.antialias ? axis_rule::wide_linear : axis_rule::linear;
    }
    if (options.align_corners) {
      m.scale = m.out > 1 ? (in - 1) / (out - 1) : 0;
      m.shift = 0;
    }
    return m;
  }
  template <class T>
  T fill() const {
    return T(0);
  }

  template <class X>
  static constexpr auto mistake() {
    return floating_of_rank<3, 5, X>();
  }

 private:
  /// By the places of the options. `length` is the extent that the scale gives.
  axis_map placed(axis_map m, double length) const {
    const auto in = static_cast<double>(m.in), out = static_cast<double>(m.out);
    const bool is_corners = options.places == pixel_places::align_corners;
    if (is_corners || options.places == pixel_places::asymmetric) m.shift = 0;
    if (is_corners) m.scale = length > 1 ? (in - 1) / (length - 1) : 0;
    if (options.places == pixel_places::pytorch_half_pixel && !(length > 1)) m.scale = m.shift = 0;
    if (options.places == pixel_places::half_pixel_symmetric) m.offset = in / 2 * (1 - out / length);
    if (m.in == m.out && m.scale == 1 && m.offset == 0) return m;
    m.rule = options.mode == interpolation::nearest   ? axis_rule::rounded
             : options.mode == interpolation::bicubic ? axis_rule::cubic
                                                      : axis_rule::linear;
    m.rounding = options.nearest_mode;
    return m;
  }
  void check_options(int axes) const {
    using sinter::detail::refuse;
    const auto& [size, factor, mode, corners, antialias, places, rounding, a, exclude] = options;
    if (size.given() == factor.given())
      refuse<value_error>({"interpolate: give either size or scale_factor",
                           size.given() ? ", not both; a size in braces is written {.size = {64, 48}}" : ""});
    const int numbers = size.given() ? size.count() : factor.count();
    if (numbers != 1 && numbers != axes)
      refuse<value_error>({"interpolate: ", size.given() ? "size" : "scale_factor", " has ", numbers, " numbers for ",
                           axes, " spatial axes; give one, or one for each"});
    for (int d = 0; factor.given() && d < axes; ++d)
      if (!(factor[d] > 0 && factor[d] < 1e9))
        refuse<value_error>({"interpolate: scale_factor is ", factor[d], "; it must be above 0 and below 1e9"});
    const bool is_nearest = mode == interpolation::nearest || mode == interpolation::nearest_exact;
    const int fits = mode == interpolation::linear ? 1 : mode == interpolation::trilinear ? 3 : 2;
    const bool is_for_all = is_nearest || mode == interpolation::area;
    if (!is_for_all && axes != fits)
      refuse<value_error>({"interpolate: this mode is for ", fits, " spatial axes, not ", axes,
                           "; linear is for one, bilinear and bicubic for two, trilinear for three"});
    if (is_for_all && corners)
      refuse<value_error>({"interpolate: align_corners is for linear, bilinear, trilinear and bicubic"});
    if (antialias && mode != interpolation::bilinear && mode != interpolation::bicubic)
      refuse<value_error>({"interpolate: antialias is for bilinear and bicubic"});
    if (places != pixel_places::of_mode &&
        (corners || antialias || mode == interpolation::nearest_exact || mode == interpolation::area))
      refuse<value_error>(
          {"interpolate: places are for nearest, linear, bilinear, trilinear and bicubic, without align_corners and "
           "antialias"});
    if ((exclude || a != -0.75) && (mode != interpolation::bicubic || antialias))
      refuse<value_error>({"interpolate: cubic_coeff_a and exclude_outside are for bicubic without antialias"});
  }
};

}  // namespace ops

/// Images of another size, as torch.nn.functional.interpolate: (N,C,L), (N,C,H,W) or (N,C,D,H,W)
/// with new extents behind the channels, which are `size`, or floor(extent scale_factor). One number stands for all
/// axes. The default mode takes the nearest element; see interpolation for the others. A scale_factor enters the
/// positions as it is given, not as the quotient of the extents, except by area. Bilinear and bicubic read the nearest
/// elements, of a much smaller image few; with antialias weights are as wide as results lie apart, and the cubic's a is
/// -0.5 in place of -0.75, as in PyTorch and PIL. Floating point; the result lies in memory as x does.
/// Options: .size or .scale_factor, a number or one for each axis; .mode = interpolation::nearest, or nearest_exact,
/// linear, bilinear, trilinear, bicubic, area; .align_corners = false; .antialias = false; and those of ONNX's Resize,
/// .places = pixel_places::of_mode, .nearest_mode = pixel_rounding::prefer_floor, .cubic_coeff_a = -0.75,
/// .exclude_outside = false. Derivative: each element gets g times its weight, from all results
/// that it is in. Errors: value_error for options
/// that do not fit each other or x, shape_error for an extent of 0.
///
///     tensor larger = interpolate(pictures, {.scale_factor = 2});
///     tensor thumbnail = interpolate(pictures, {.size = {32, 24}, .mode = interpolation::bilinear});
template <class X>
  requires detail::takes_operands<ops::interpolate_op, X>
detail::kernel_of<ops::interpolate_op, X> interpolate(X&& x, const interpolate_options& options) {
  return detail::make_kernel(ops::interpolate_op(options), std::forward<X>(x));
}
template <class X, class Problem = typename detail::kernel_check<ops::interpolate_op, X>::problem,
          class Fix = typename detail::kernel_check<ops::interpolate_op, X>::fix>
void interpolate(X&&, const interpolate_options&) = delete;
SINTER_OPTION_AS_TEXT(interpolate, write_dot_size_and_dot_mode_in_braces_such_as_interpolation_bilinear,
                      std::initializer_list<index_t>)

}  // namespace sinter
