// sinter/nn/rearrange.hpp: modules without parameters that rearrange images: paddings, upsample, pixel_shuffle, unfold.
#pragma once

#include <span>

#include "sinter/nn/activation.hpp"
#include "sinter/ops/interpolate.hpp"
#include "sinter/ops/pad.hpp"
#include "sinter/ops/pixel_shuffle.hpp"
#include "sinter/ops/unfold.hpp"

namespace sinter::nn {

template <>
inline constexpr bool is_setting<pad_amounts> = true;
template <>
inline constexpr bool is_setting<interpolate_options> = true;
template <>
inline constexpr bool is_setting<unfold_options> = true;

namespace detail {

/// The same number on all sides of so many axes.
SINTER_SHARED pad_amounts amounts_on_all_sides(int axes, index_t all);
/// Errors: value_error unless those are the amounts of so many axes.
SINTER_SHARED void check_padded_axes(const pad_amounts& amounts, int axes);

/// pad over N axes: one number for all sides, or two for each axis, the last axis first.
template <class Self, int N, pad_mode Mode>
struct padding_of : stateless<Self> {
  padding_of() = default;
  explicit padding_of(index_t all) : amounts(amounts_on_all_sides(N, all)) {}
  explicit padding_of(const pad_amounts& each) : amounts(each) { check_padded_axes(each, N); }
  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::kernel_check<ops::pad_op<element_of<X>>, X>{};
  }
  template <class X>
  auto forward(X&& x) const {
    return sinter::pad(std::forward<X>(x), amounts, Mode);
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("amounts", m.amounts...);
  }
  pad_amounts amounts;
};

}  // namespace detail

#define SINTER_PADDING(name, N, mode)                              \
  struct name : detail::padding_of<name, N, pad_mode::mode> {      \
    using detail::padding_of<name, N, pad_mode::mode>::padding_of; \
  };
/// sinter::pad as a module: `nn::reflection_pad2d(1)` on all sides, `nn::reflection_pad2d({1, 1, 2, 2})` left, right,
/// top and bottom.
SINTER_PADDING(zero_pad1d, 1, constant)
SINTER_PADDING(zero_pad2d, 2, constant)
SINTER_PADDING(zero_pad3d, 3, constant)
SINTER_PADDING(reflection_pad1d, 1, reflect)
SINTER_PADDING(reflection_pad2d, 2, reflect)
SINTER_PADDING(reflection_pad3d, 3, reflect)
SINTER_PADDING(replication_pad1d, 1, replicate)
SINTER_PADDING(replication_pad2d, 2, replicate)
SINTER_PADDING(replication_pad3d, 3, replicate)
SINTER_PADDING(circular_pad1d, 1, circular)
SINTER_PADDING(circular_pad2d, 2, circular)
SINTER_PADDING(circular_pad3d, 3, circular)
#undef SINTER_PADDING

#define SINTER_CONSTANT_PADDING(name, N)                                                \
  struct name : detail::padding_of<name, N, pad_mode::constant> {                       \
    using base = detail::padding_of<name, N, pad_mode::constant>;                       \
    name() = default;                                                                   \
    name(index_t all, double with);                                                     \
    name(const pad_amounts& each, double with);                                         \
    template <class X>                                                                  \
    auto forward(X&& x) const {                                                         \
      return sinter::pad(std::forward<X>(x), this->amounts, pad_mode::constant, value); \
    }                                                                                   \
    template <class F, class... M>                                                      \
    static void visit(F&& f, M&... m) {                                                 \
      base::visit(f, m...);                                                             \
      f("value", m.value...);                                                           \
    }                                                                                   \
    double value = 0;                                                                   \
  };
/// The same with a value: `nn::constant_pad2d(1, -1)`.
SINTER_CONSTANT_PADDING(constant_pad1d, 1)
SINTER_CONSTANT_PADDING(constant_pad2d, 2)
SINTER_CONSTANT_PADDING(constant_pad3d, 3)
#undef SINTER_CONSTANT_PADDING

/// sinter::interpolate as a module: `nn::upsample({.scale_factor = 2, .mode = interpolation::bilinear})`.
struct upsample : stateless_kernel<upsample, ops::interpolate_op> {
  upsample() = default;
  explicit upsample(const interpolate_options& o);
  template <std::integral N, class Problem = options_that_are_not_in_braces,
            class Fix = write_dot_scale_factor_and_dot_mode_in_braces>
  explicit upsample(N) = delete;
  template <class X>
  auto forward(X&& x) const {
    return sinter::interpolate(std::forward<X>(x), options);
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("options", m.options...);
  }
  interpolate_options options;
};

#define SINTER_PIXEL_BLOCKS(name)                           \
  struct name : stateless_kernel<name, ops::pixel_blocks> { \
    name() = default;                                       \
    explicit name(index_t by);                              \
    template <class X>                                      \
    auto forward(X&& x) const {                             \
      return sinter::name(std::forward<X>(x), factor);      \
    }                                                       \
    template <class F, class... M>                          \
    static void visit(F&& f, M&... m) {                     \
      f("factor", m.factor...);                             \
    }                                                       \
    index_t factor = 1;                                     \
  };
/// The functions of the same names as modules.
SINTER_PIXEL_BLOCKS(pixel_shuffle)
SINTER_PIXEL_BLOCKS(pixel_unshuffle)
#undef SINTER_PIXEL_BLOCKS

/// sinter::unfold as a module: `nn::unfold({3, 3}, {.padding = 1})`.
struct unfold : stateless_kernel<unfold, ops::unfold_op> {
  unfold() = default;
  explicit unfold(const per_axis<2>& kernel, const unfold_options& o = {});
  template <class X>
  auto forward(X&& x) const {
    return sinter::unfold(std::forward<X>(x), kernel_size, options);
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("kernel_size", m.kernel_size...);
    f("options", m.options...);
  }
  per_axis<2> kernel_size = 1;
  unfold_options options;
};

/// sinter::fold as a module: `nn::fold({28, 28}, {3, 3}, {.padding = 1})`.
struct fold : stateless_kernel<fold, ops::fold_op> {
  fold() = default;
  fold(const per_axis<2>& size, const per_axis<2>& kernel, const unfold_options& o = {});
  template <class X>
  auto forward(X&& x) const {
    return sinter::fold(std::forward<X>(x), output_size, kernel_size, options);
  }
  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("output_size", m.output_size...);
    f("kernel_size", m.kernel_size...);
    f("options", m.options...);
  }
  per_axis<2> output_size = 1, kernel_size = 1;
  unfold_options options;
};

#if SINTER_DEFINES

namespace detail {

SINTER_SHARED pad_amounts amounts_on_all_sides(int axes, index_t all) {
  index_t each[std::size_t{2 * max_rank}];
  for (index_t& n : each) n = all;
  return pad_amounts(std::span<const index_t>(each, static_cast<std::size_t>(2 * axes)));
}

SINTER_SHARED void check_padded_axes(const pad_amounts& amounts, int axes) {
  if (amounts.axes() != axes)
    sinter::detail::refuse<value_error>(
        {"padding of ", axes, " axes takes one number or ", 2 * axes, ", not ", 2 * amounts.axes()});
}

}  // namespace detail

// Each instantiates the base of its module, so that they stand here.
#define SINTER_CONSTANT_PADDING(name)                                            \
  SINTER_SHARED name::name(index_t all, double with) : base(all), value(with) {} \
  SINTER_SHARED name::name(const pad_amounts& each, double with) : base(each), value(with) {}
SINTER_CONSTANT_PADDING(constant_pad1d)
SINTER_CONSTANT_PADDING(constant_pad2d)
SINTER_CONSTANT_PADDING(constant_pad3d)
#undef SINTER_CONSTANT_PADDING
SINTER_SHARED upsample::upsample(const interpolate_options& o) : options(o) {}
SINTER_SHARED pixel_shuffle::pixel_shuffle(index_t by) : factor(by) {}
SINTER_SHARED pixel_unshuffle::pixel_unshuffle(index_t by) : factor(by) {}
SINTER_SHARED unfold::unfold(const per_axis<2>& kernel, const unfold_options& o) : kernel_size(kernel), options(o) {}
SINTER_SHARED fold::fold(const per_axis<2>& size, const per_axis<2>& kernel, const unfold_options& o)
    : output_size(size), kernel_size(kernel), options(o) {}

#endif  // SINTER_DEFINES

}  // namespace sinter::nn
