// sinter/ops/detail/axis_map.hpp: which elements of an operand's axis make each element of a result's: padding and
// interpolation, axis by axis.
#pragma once

#include "sinter/core/memory_format.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

/// Which element is the nearest one to a place between two; prefer_floor and prefer_ceil differ in the middle alone.
enum class pixel_rounding { floor, ceil, prefer_floor, prefer_ceil };

}  // namespace sinter

namespace sinter::ops {

enum class axis_rule {
  constant,       ///< the element at o - before, or none
  reflect,        ///< as in a mirror at the first and at the last element
  replicate,      ///< the nearest element that there is
  circular,       ///< as if the axis were repeated
  nearest,        ///< one element, at a scaled position
  nearest_exact,  ///< the same, of the middle of result o
  rounded,        ///< one element, at a position that is rounded as the map says
  linear,         ///< two elements
  cubic,          ///< four
  area,           ///< the mean of all that result o has a part of
  wide_linear,    ///< as linear, with weights as wide as results lie apart
  wide_cubic      ///< as cubic
};

/// v[k], by comparisons: on a GPU an array that is indexed lies in memory, not in registers.
template <class V>
SINTER_WORD V one_of(const V (&v)[4], int k) {
  const V low = k == 0 ? v[0] : v[1], high = k == 2 ? v[2] : v[3];
  return k < 2 ? low : high;
}

/// How much an element counts at this distance, at most 1 for an inner one of four, at most 2 for an outer one. R.
/// Keys, IEEE Trans. ASSP 29 (1981).
template <class C>
SINTER_WORD C cubic_weight(C distance, bool is_inner, C a) {
  if (is_inner) return ((a + 2) * distance - (a + 3)) * distance * distance + 1;
  return ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a;
}
/// Its derivative.
template <class C>
SINTER_WORD C cubic_slope(C distance, bool is_inner, C a) {
  if (is_inner) return (3 * (a + 2) * distance - 2 * (a + 3)) * distance;
  return (3 * a * distance - 10 * a) * distance + 8 * a;
}

/// The elements of an axis that make one element of a result, and how much each counts. Weights are of type C.
template <class C>
struct axis_taps {
  int count = 1;
  index_t at[4] = {};
  C weight[4] = {C(1)};

  SINTER_WORD index_t last() const { return one_of(at, count - 1); }
};

/// The elements from `first` to before `end` of an axis that make one element of a result by area or with wide weights.
struct axis_window {
  index_t first = 0, end = 1;
  double middle = 0, share = 1;  ///< where the result lies, and what makes the sum of the weights 1
};

/// `out` elements of a result, made of `in` elements of an operand.
struct axis_map {
  axis_rule rule = axis_rule::constant;
  index_t in = 1, out = 1;
  index_t before = 0;             ///< paddings: results in front of the operand's first element
  index_t first = 0, period = 1;  ///< of what circular and reflect repeat
  double scale = 1, shift = 0;    ///< interpolation: result o lies at scale (o + shift) - shift + offset
  double offset = 0;              ///< of the operand
  double a = -0.75;               ///< of cubic weights
  bool drops_outside = false;     ///< of cubic weights: those of elements outside count nothing
  pixel_rounding rounding = pixel_rounding::floor;

  SINTER_WORD bool is_identity() const { return rule == axis_rule::constant && before == 0 && in == out; }
  SINTER_WORD bool is_wide() const { return rule >= axis_rule::area; }
  SINTER_WORD bool blends() const { return rule >= axis_rule::linear; }
  SINTER_WORD index_t within(index_t at) const { return at < 0 ? 0 : at < in ? at : in - 1; }
  SINTER_WORD index_t modulo(index_t at) const {
    const index_t rest = at % period;
    return rest < 0 ? rest + period : rest;
  }

  template <class C>
  SINTER_WORD axis_taps<C> taps(index_t o) const {
    axis_taps<C> t;
    const index_t at = o - before;
    switch (rule) {
      case axis_rule::constant:
        t.at[0] = at;
        t.count = at >= 0 && at < in;
        break;
      case axis_rule::reflect:
        t.at[0] = modulo(at) < in ? modulo(at) : period - modulo(at);
        break;
      case axis_rule::replicate:
        t.at[0] = within(at);
        break;
      case axis_rule::circular:
        t.at[0] = first + modulo(at);
        break;
      // PyTorch places the nearest element in float, whatever the elements are.
      case axis_rule::nearest:
        t.at[0] = within(static_cast<index_t>(static_cast<float>(scale) * static_cast<float>(o)));
        break;
      case axis_rule::nearest_exact:
        t.at[0] = within(static_cast<index_t>(static_cast<float>(scale) * (static_cast<float>(o) + 0.5f)));
        break;
      case axis_rule::rounded: {
        const double place = position(o);
        const double nearest = rounding == pixel_rounding::floor          ? math::floor(place)
                               : rounding == pixel_rounding::ceil         ? math::ceil(place)
                               : rounding == pixel_rounding::prefer_floor ? math::ceil(place - 0.5)
                                                                          : math::floor(place + 0.5);
        t.at[0] = within(static_cast<index_t>(nearest));
        break;
      }
      default: {
        if constexpr (std::is_floating_point_v<C>) blend(o, t);
      }
    }
    return t;
  }

  /// What stands in place of taps where is_wide().
  SINTER_WORD axis_window window(index_t o) const {
    axis_window w;
    if (rule == axis_rule::area) {
      w.first = o * in / out;
      w.end = ((o + 1) * in + out - 1) / out;
      w.share = 1 / static_cast<double>(w.end - w.first);
      return w;
    }
    const double place = scale * (static_cast<double>(o) + 0.5),
                 reach = width() * (rule == axis_rule::wide_cubic ? 2 : 1);
    w.middle = place - 0.5;
    const index_t before_first = static_cast<index_t>(place - reach + 0.5),
                  end = static_cast<index_t>(place + reach + 0.5);
    w.first = before_first > 0 ? before_first : 0;
    w.end = end < in ? end : in;
    double total = 0;
    for (index_t i = w.first; i < w.end; ++i) total += weight(w, i);
    if (total != 0) w.share = 1 / total;
    return w;
  }
  SINTER_WORD double weight(const axis_window& w, index_t i) const {
    if (rule == axis_rule::area) return w.share;
    const double from_middle = (static_cast<double>(i) - w.middle) / width(),
                 distance = from_middle < 0 ? -from_middle : from_middle;
    if (rule == axis_rule::wide_linear) return distance < 1 ? (1 - distance) * w.share : 0;
    return distance < 2 ? cubic_weight(distance, distance < 1, a) * w.share : 0;
  }

  /// f(o, weight) for the results that read element i.
  template <class C, class F>
  SINTER_WORD void each_reader(index_t i, const F& f) const {
    const index_t o = i + before;
    switch (rule) {
      case axis_rule::constant:
        if (o >= 0 && o < out) f(o, C(1));
        break;
      case axis_rule::replicate: {
        const index_t end = i == in - 1 || o >= out ? out : o + 1;
        for (index_t k = i == 0 || o < 0 ? 0 : o; k < end; ++k) f(k, C(1));
        break;
      }
      case axis_rule::reflect: {
        const index_t one = modulo(o), other = modulo(before - i);
        for (int side = 0; side < (one != other ? 2 : 1); ++side)
          for (index_t k = side == 0 ? one : other; k < out; k += period) f(k, C(1));
        break;
      }
      case axis_rule::circular:
        if (i >= first && i < first + period)
          for (index_t k = modulo(o - first); k < out; k += period) f(k, C(1));
        break;
      default:
        each_interpolated<C>(i, f);
    }
  }

 private:
  /// Of an element's weights, where a distance of 1 is that between elements.
  SINTER_WORD double width() const { return scale > 1 ? scale : 1; }
  SINTER_WORD double position(index_t o) const { return scale * (static_cast<double>(o) + shift) - shift + offset; }
  template <class C>
  SINTER_WORD void blend(index_t o, axis_taps<C>& t) const {
    double place = position(o);
    if (rule == axis_rule::linear) {
      if (place < 0) place = 0;
      const index_t base = within(static_cast<index_t>(place));
      const C rest = static_cast<C>(place - static_cast<double>(base));
      t.count = 2;
      t.at[0] = base;
      t.at[1] = within(base + 1);
      t.weight[1] = rest < 1 ? rest : C(1);
      t.weight[0] = 1 - t.weight[1];
      return;
    }
    auto base = static_cast<index_t>(place);
    if (static_cast<double>(base) > place) --base;
    const double rest = place - static_cast<double>(base);  // the digits of the outer weights cancel
    t.count = 4;
    SINTER_UNROLL
    for (int k = 0; k < 4; ++k) {
      t.at[k] = within(base + k - 1);
      const double distance = k < 2 ? rest + static_cast<double>(1 - k) : static_cast<double>(k - 1) - rest;
      t.weight[k] = static_cast<C>(cubic_weight(distance, k == 1 || k == 2, a));
    }
    if (!drops_outside) return;
    C total = 0;
    SINTER_UNROLL
    for (int k = 0; k < 4; ++k) {
      if (t.at[k] != base + k - 1) t.weight[k] = 0;
      total += t.weight[k];
    }
    SINTER_UNROLL
    for (int k = 0; k < 4; ++k) t.weight[k] /= total;
  }

  /// Taps ascend with o, so that the readers of an element are neighbours.
  template <class C, class F>
  SINTER_WORD void each_interpolated(index_t i, const F& f) const {
    const double reach = is_wide()                    ? 2 * width() + 1
                         : rule == axis_rule::cubic   ? 2
                         : rule >= axis_rule::rounded ? 1
                                                      : 0;
    const double guess = scale > 0 ? (static_cast<double>(i) - reach + shift - offset) / scale - shift : 0;
    index_t o = !(guess > 0) ? 0 : guess < static_cast<double>(out) ? static_cast<index_t>(guess) : out;
    while (o > 0 && last_read<C>(o - 1) >= i) --o;
    while (o < out && last_read<C>(o) < i) ++o;
    // f stands once: on a GPU what is called from several places is not inlined, and what it captures lies in memory.
    for (; o < out; ++o) {
      C counts = 0;
      if (is_wide()) {
        const axis_window w = window(o);
        if (w.first > i) break;
        counts = static_cast<C>(weight(w, i));
      } else {
        const axis_taps<C> t = taps<C>(o);
        if (t.at[0] > i) break;
        SINTER_UNROLL
        for (int k = 0; k < 4; ++k)
          if (k < t.count && t.at[k] == i) counts += t.weight[k];
      }
      f(o, counts);
    }
  }
  template <class C>
  SINTER_WORD index_t last_read(index_t o) const {
    return is_wide() ? window(o).end - 1 : taps<C>(o).last();
  }
};

/// The axes of a padding or an interpolation for its kernels, the one with the largest stride first; axes that stay as
/// they are make one where strides allow it. At most three have readers in more than one place.
struct resampling {
  int rank = 1;
  axis_map axis[max_rank];
  index_t x_strides[max_rank] = {}, y_strides[max_rank] = {};

  /// Numbers of elements.
  SINTER_WORD index_t results() const {
    index_t n = 1;
    for (int d = 0; d < rank; ++d) n *= axis[d].out;
    return n;
  }
  SINTER_WORD index_t sources() const {
    index_t n = 1;
    for (int d = 0; d < rank; ++d) n *= axis[d].in;
    return n;
  }
  bool blends() const {
    for (int d = 0; d < rank; ++d)
      if (axis[d].blends()) return true;
    return false;
  }
  bool is_wide() const {
    for (int d = 0; d < rank; ++d)
      if (axis[d].is_wide()) return true;
    return false;
  }
};

/// Axes in the order in memory of the result, or of the operand.
inline resampling make_resampling(const axis_map* maps, int rank, const index_t* x_strides, const index_t* y_strides,
                                  bool by_result) {
  index_t shape[max_rank];
  int order[max_rank];
  for (int d = 0; d < rank; ++d) shape[d] = by_result ? maps[d].out : maps[d].in;
  sinter::detail::memory_order(shape, rank, 1, by_result ? &y_strides : &x_strides, order);
  resampling r;
  r.rank = 0;
  for (int k = 0; k < rank; ++k) {
    const int d = order[k], last = r.rank - 1;
    const axis_map& m = maps[d];
    if (m.is_identity() && m.in == 1) continue;
    if (m.is_identity() && last >= 0 && r.axis[last].is_identity() && r.x_strides[last] == x_strides[d] * m.in &&
        r.y_strides[last] == y_strides[d] * m.in) {
      r.axis[last].in = r.axis[last].out *= m.in;
      r.x_strides[last] = x_strides[d];
      r.y_strides[last] = y_strides[d];
    } else {
      r.axis[r.rank] = m;
      r.x_strides[r.rank] = x_strides[d];
      r.y_strides[r.rank++] = y_strides[d];
    }
  }
  if (r.rank == 0) r.rank = 1;
  return r;
}

/// Base of pad and interpolate. An op has map(d, x), the map of axis d for an operand of shape x, and fill<T>(), what
/// stands where a result reads nothing.
struct resampling_op : kernel_op {
  static constexpr unsigned grad_uses[1] = {uses::nothing};
  static constexpr bool keeps_order = true;
  static constexpr take takes(int) { return take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;
};

/// What the kernels of an op need to know of operand and result, or of their gradients.
template <class Op, class X, class Y>
resampling resampling_of(const Op& op, const X& x, const Y& y, bool by_result) {
  constexpr int R = X::rank;
  axis_map maps[std::size_t{max_rank}];
  for (int d = 0; d < R; ++d) maps[d] = op.map(d, x.shape());
  return make_resampling(maps, R, x.strides().data(), y.strides().data(), by_result);
}

}  // namespace sinter::ops
