// sinter/ops/grid_sample.hpp: images read at the places of a grid, and grids of affine maps.
#pragma once

#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/ops/cast.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/detail/add_in.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/interpolate.hpp"
#include "sinter/ops/matmul_axes.hpp"

namespace sinter {

struct use_a_grid_of_the_rank_of_x;

/// What stands outside of an image for grid_sample.
enum class grid_padding {
  zeros,      ///< zeros
  border,     ///< the nearest element
  reflection  ///< the image in a mirror, at its elements' middles with align_corners, else at their edges
};

/// How grid_sample reads an image between its elements and outside of it.
///
///     grid_sample(x, grid, {.padding_mode = grid_padding::border, .align_corners = true});
struct grid_sample_options {
  interpolation mode = interpolation::bilinear;  ///< or nearest, or bicubic for (N,C,H,W)
  grid_padding padding_mode = grid_padding::zeros;
  bool align_corners = false;  ///< -1 and 1 are the middles of the first and last elements, not their outer edges
};

namespace ops {

/// The elements of an axis that are read at a place: how much each counts, and its derivative by the number of the
/// grid. An element outside is -1.
template <class C>
struct grid_taps {
  int count = 0;
  index_t at[4] = {};
  C weight[4] = {};
  C slope[4] = {};
};

/// How the numbers of a grid are places along an axis.
struct grid_axis {
  index_t in = 1;
  interpolation mode = interpolation::bilinear;
  grid_padding padding = grid_padding::zeros;
  bool corners = false;

  template <class C>
  SINTER_WORD grid_taps<C> taps(C number) const {
    grid_taps<C> t;
    const C n = static_cast<C>(in);
    C x = corners ? (number + 1) / 2 * (n - 1) : ((number + 1) * n - 1) / 2;
    C slope = corners ? (n - 1) / 2 : n / 2;
    if (mode == interpolation::bicubic) {
      add_cubic(x, slope, t);
      return t;
    }
    x = inside(x, slope);
    if (mode == interpolation::nearest) {
      t.count = 1;
      t.at[0] = element_at(math::round(x));
      t.weight[0] = 1;
      return t;
    }
    const C base = math::floor(x);
    t.count = 2;
    t.at[0] = element_at(base);
    t.at[1] = element_at(base + 1);
    t.weight[0] = base + 1 - x;
    t.weight[1] = x - base;
    t.slope[0] = -slope;
    t.slope[1] = slope;
    return t;
  }

 private:
  /// The element at a whole number, which may be NaN.
  template <class C>
  SINTER_WORD index_t element_at(C x) const {
    return x >= 0 && x < static_cast<C>(in) ? static_cast<index_t>(x) : -1;
  }
  /// The place that is read in place of x, where nothing outside is; NaN is 0. The slope follows.
  template <class C>
  SINTER_WORD C inside(C x, C& slope) const {
    if (padding == grid_padding::zeros) return x;
    const C last = static_cast<C>(in - 1);
    if (padding == grid_padding::reflection) {
      const C first = corners ? C(0) : C(-0.5), span = corners ? last : static_cast<C>(in);
      if (!(span > 0)) {
        slope = 0;
        return 0;
      }
      C distance = x - first;
      if (distance < 0) {
        distance = -distance;
        slope = -slope;
      }
      const C rest = math::fmod(distance, span), turns = math::floor(distance / span);
      const bool is_turned = math::fmod(turns, C(2)) == 1;
      if (is_turned) slope = -slope;
      x = (is_turned ? span - rest : rest) + first;
    }
    if (x > 0 && x < last) return x;
    slope = 0;
    return x > 0 ? last : C(0);
  }
  template <class C>
  SINTER_WORD void add_cubic(C x, C slope, grid_taps<C>& t) const {
    const C base = math::floor(x), rest = x - base;
    t.count = 4;
    SINTER_UNROLL
    for (int k = 0; k < 4; ++k) {
      C unused = 0;
      t.at[k] = element_at(math::round(inside(base + static_cast<C>(k - 1), unused)));
      const bool is_left = k < 2;
      const C distance = is_left ? rest + static_cast<C>(1 - k) : static_cast<C>(k - 1) - rest;
      t.weight[k] = cubic_weight(distance, k == 1 || k == 2, C(-0.75));
      t.slope[k] = (is_left ? slope : -slope) * cubic_slope(distance, k == 1 || k == 2, C(-0.75));
    }
  }
};

/// Images and places as kernels see them. The grid is dense (N,places,axes), its last numbers are for the first axis;
/// results are dense (N,C,places). Strides in elements.
template <int Axes>
struct grid_sampling {
  index_t batch = 0, channels = 0, places = 0;
  index_t x_batch = 0, x_channel = 0, x_step[std::size_t{Axes}] = {};
  grid_axis axis[std::size_t{Axes}];

  SINTER_WORD index_t elements() const {
    index_t n = 1;
    for (int d = 0; d < Axes; ++d) n *= axis[d].in;
    return n;
  }
  /// How many elements are read at a place.
  SINTER_WORD int taps() const {
    const int each = axis[0].mode == interpolation::nearest ? 1 : axis[0].mode == interpolation::bicubic ? 4 : 2;
    int n = 1;
    for (int d = 0; d < Axes; ++d) n *= each;
    return n;
  }
  /// f(offset in a plane, weight, slopes) for the elements that are read at the place of these numbers, outside ones
  /// with the offset -1.
  template <class C, class T, class F>
  SINTER_WORD void each_tap(const T* numbers, const F& f) const {
    grid_taps<C> along[std::size_t{Axes}];
    for (int d = 0; d < Axes; ++d) along[d] = axis[d].taps(static_cast<C>(numbers[Axes - 1 - d]));
    const int all = taps(), each = along[0].count;
    for (int tap = 0; tap < all; ++tap) {
      index_t at = 0;
      C weight = 1, slope[std::size_t{Axes}];
      for (int d = 0; d < Axes; ++d) slope[d] = 1;
      for (int d = Axes - 1, rest = tap; d >= 0; --d, rest /= each) {
        const int k = rest % each;
        const index_t element = one_of(along[d].at, k);
        at = at < 0 || element < 0 ? -1 : at + element * x_step[d];
        const C w = one_of(along[d].weight, k), s = one_of(along[d].slope, k);
        weight *= w;
        for (int e = 0; e < Axes; ++e) slope[e] *= e == d ? s : w;
      }
      f(at, weight, slope);
    }
  }
};

/// y(n,c,i...) = x(n, c, the place grid(n,i...)).
struct grid_sample_op : kernel_op {
  static constexpr const char* name = "grid_sample";
  static constexpr unsigned grad_uses[2] = {uses::second, uses::first | uses::second};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::strided : take::dense; }

  grid_sample_options options;
  explicit grid_sample_op(const grid_sample_options& o) : options(o) {}

  template <int R>
  extents<R> shape(const extents<R>& x, const extents<R>& grid) const {
    using sinter::detail::refuse;
    const interpolation mode = options.mode;
    if (mode != interpolation::nearest && mode != interpolation::bilinear && mode != interpolation::bicubic)
      refuse<value_error>({"grid_sample: this mode is for interpolate alone; take nearest, bilinear or bicubic"});
    if (R != 4 && mode == interpolation::bicubic)
      refuse<value_error>({"grid_sample: bicubic is for images (N,C,H,W); x has shape ", x});
    bool fits = grid[0] == x[0] && grid[R - 1] == R - 2;
    if (!fits)
      refuse<shape_error>({"grid_sample: a grid of shape ", grid, " for x of shape ", x,
                           "; its first extent must be that of x, and its last one ", R - 2});
    for (int d = 2; d < R; ++d)
      if (x[d] < 1) refuse<shape_error>({"grid_sample: x of shape ", x, " has no elements on axis ", d});
    extents<R> y = x;
    for (int d = 2; d < R; ++d) y[d] = grid[d - 1];
    return y;
  }
  template <class X, class G>
  static constexpr auto mistake() {
    if constexpr (!sinter::detail::is_fitting<decltype(floating_of_rank<4, 5, X, G>())>)
      return floating_of_rank<4, 5, X, G>();
    else if constexpr (rank_of<X> != rank_of<G>)
      return sinter::detail::mistake<operands_of_ranks<rank_of<X>, rank_of<G>>, use_a_grid_of_the_rank_of_x>{};
    else return sinter::detail::fitting<element_of<X>>{};
  }

  /// For x, or a gradient of its shape, and a grid.
  template <class X, class G>
  grid_sampling<X::rank - 2> sampling_of(const X& x, const G& grid) const {
    constexpr int axes = X::rank - 2;
    grid_sampling<axes> s;
    s.batch = x.shape()[0];
    s.channels = x.shape()[1];
    s.places = 1;
    for (int d = 0; d < axes; ++d) s.places *= grid.shape()[d + 1];
    s.x_batch = x.strides()[0];
    s.x_channel = x.strides()[1];
    for (int d = 0; d < axes; ++d) {
      s.x_step[d] = x.strides()[d + 2];
      s.axis[d] = {x.shape()[d + 2], options.mode, options.padding_mode, options.align_corners};
    }
    return s;
  }
  /// add(sampling, dx) adds to the gradient of x. Those of half and bfloat16 are gathered in float.
  template <class Backward, class F>
  void add_to_image(const Backward& b, const F& add) const {
    const auto& grid = b.template operand<1>();
    sinter::detail::add_in_float(b.template sum_of<0>(), [&](const auto& dx) { add(sampling_of(dx, grid), dx); });
  }
};

}  // namespace ops

/// x read at the places of a grid, as torch.nn.functional.grid_sample: (N,C,H,W) and (N,H',W',2) => (N,C,H',W'), or
/// (N,C,D,H,W) and (N,D',H',W',3) => (N,C,D',H',W'). The numbers of a place are for the last axis of x first; -1 and 1
/// are its ends. bilinear blends the two nearest elements of each axis, bicubic four (R. Keys, IEEE Trans. ASSP 29
/// (1981), a = -0.75). Floating point; the result is row-major. NaN in a grid is a place outside. Derivative: to x g
/// times each element's weight, to the grid g times the slope there, which is 0 with nearest, and where border holds a
/// place. Errors: shape_error for a grid that does not fit, or an axis of x without elements, value_error for a mode
/// that is not there.
///
///     tensor turned = grid_sample(pictures, affine_grid(spread, {8, 3, 64, 64}));
template <class X, class G>
  requires detail::takes_operands<ops::grid_sample_op, X, G>
detail::kernel_of<ops::grid_sample_op, X, G> grid_sample(X&& x, G&& grid, const grid_sample_options& options = {}) {
  return detail::make_kernel(ops::grid_sample_op(options), std::forward<X>(x), std::forward<G>(grid));
}
template <class X, class G, class Problem = typename detail::kernel_check<ops::grid_sample_op, X, G>::problem,
          class Fix = typename detail::kernel_check<ops::grid_sample_op, X, G>::fix>
void grid_sample(X&&, G&&, const grid_sample_options& = {}) = delete;

template <int>
struct theta_of_rank;
struct use_theta_of_rank_3_and_a_size_of_4_or_5_extents;

namespace detail {

template <int Size, class Theta>
constexpr auto find_affine_mistake() {
  if constexpr (!has_axes<Theta>) return axes_mistake<Theta>{};
  else if constexpr (!floating_element<element_of<Theta>>)
    return mistake<element_type_without_this_op<element_of<Theta>>, use_another_element_type_or_cast>{};
  else if constexpr (rank_of<Theta> != 3 || (Size != 4 && Size != 5))
    return mistake<theta_of_rank<rank_of<Theta>>, use_theta_of_rank_3_and_a_size_of_4_or_5_extents>{};
  else return fitting<element_of<Theta>>{};
}
template <int Size, class Theta>
using affine_mistake = decltype(find_affine_mistake<Size, bare<Theta>>());

/// The middles of n elements between -1 and 1; with corners the first and the last one lie there.
template <class T, device D>
tensor<T, 1, D> places_of_elements(index_t n, bool corners) {
  if (n <= 1) return zeros<T, D>({n});
  const auto places = linspace<T, D>(-1, 1, n);
  if (corners) return places;
  return eval(places * static_cast<compute_type<T>>(static_cast<double>(n - 1) / static_cast<double>(n)));
}

}  // namespace detail

/// The grid of an affine map, for grid_sample: of each sample, theta (N,2,3) times the places (x, y, 1) of the elements
/// of a result of this size (N,C,H,W) => (N,H,W,2), or theta (N,3,4) times (x, y, z, 1) for (N,C,D,H,W) => (N,D,H,W,3).
/// As torch.nn.functional.affine_grid. Runs at once. Errors: shape_error for theta of another shape, value_error for a
/// negative extent.
///
///     tensor grid = affine_grid(spread, {8, 3, 64, 64});
template <class Theta, std::size_t N>
  requires(detail::is_fitting<detail::affine_mistake<int{N}, Theta>>)
auto affine_grid(Theta&& theta, const index_t (&size)[N], bool align_corners = false) {
  using T = element_of<Theta>;
  using D = device_of<Theta>;
  constexpr int axes = int{N} - 2;
  detail::check_defined("affine_grid", theta);
  const auto to = detail::to_extents(size);
  if (!(theta.shape() == extents<3>{{to[0], axes, axes + 1}}))
    detail::refuse<shape_error>({"affine_grid: theta of shape ", theta.shape(), " for a size of ", to, "; it must be (",
                                 to[0], ",", axes, ",", axes + 1, ")"});
  for (int d = 0; d < int{N}; ++d)
    if (to[d] < 0) detail::refuse<value_error>({"affine_grid: size ", to, "; extents must be 0 or more"});
  extents<axes + 1> all = detail::ones_extents<axes + 1>();
  extents<axes + 2> shape;
  shape[0] = to[0];
  for (int d = 0; d < axes; ++d) shape[d + 1] = all[d] = to[d + 2];
  shape[axes + 1] = axes;
  std::vector<tensor<T, axes + 1, D>> numbers;
  for (int d = axes - 1; d >= 0; --d) {
    extents<axes + 1> line = detail::ones_extents<axes + 1>();
    line[d] = all[d];
    numbers.push_back(
        detail::places_of_elements<T, D>(all[d], align_corners).reshape(line.values).broadcast_to(all.values));
  }
  numbers.push_back(ones<T, D>(all));
  const index_t places = all.numel();
  const auto base = concat(axes, numbers).reshape({1, places, axes + 1});
  return eval(matmul(base, detail::eval_to_read(std::forward<Theta>(theta)).transpose())).reshape(shape.values);
}
template <class Theta, std::size_t N, class Problem = typename detail::affine_mistake<int{N}, Theta>::problem,
          class Fix = typename detail::affine_mistake<int{N}, Theta>::fix>
void affine_grid(Theta&&, const index_t (&)[N], bool = false) = delete;

}  // namespace sinter
