// sinter/parallel/tile_rule.hpp: what a module reads of an image for a tile of its result, for each module that has a
// rule.
#pragma once

#include <limits>
#include <tuple>
#include <utility>

#include "sinter/nn/conv.hpp"
#include "sinter/nn/norm.hpp"
#include "sinter/nn/pooling.hpp"
#include "sinter/nn/rearrange.hpp"
#include "sinter/nn/sequential.hpp"
#include "sinter/parallel/tile_geometry.hpp"
#include "sinter/random/window.hpp"

namespace sinter::nn {

/// Where a tile of a result lies: its first row and column, in a result of this shape (N,C,H,W), of an input of that.
struct tile_place {
  extents<4> shape, input;
  index_t row, column;
};

/// How a module of type M works on tiles. A module of your own takes part by a specialisation, of one of three kinds.
///
/// Elementwise work, which reads of its input what lies where its result lies:
///
///     template <>
///     struct sinter::nn::tile_rule<my_activation> : sinter::nn::tile_pointwise {};
///
/// A window that moves over the image:
///
///     template <class K>
///     struct sinter::nn::tile_rule<my_filter<K>> {
///       static tile_windows windows(const my_filter<K>&) { return {{3, 1, 1}, {3, 1, 1}}; }    // 3 x 3, stride 1
///       static extents<4> shape(const my_filter<K>&, const extents<4>& x) { return x; }        // of the whole result
///       static double outside(const my_filter<K>&) { return 0; }                               // what padding is
///       template <class X>
///       static auto forward(const my_filter<K>& m, const X& x, const tile_place&) {
///         return m.without_padding(x);  // x holds all that this tile of the result reads, padding included
///       }
///     };
///
/// Other modules, one after the other or added:
///
///     template <device D, class K>
///     struct sinter::nn::tile_rule<block<D, K>> {
///       static auto steps(const block<D, K>& b) {
///         return tile_steps(tile_sum(tile_steps(b.conv1, b.bn1, relu(), b.conv2, b.bn2), tile_steps()), relu());
///       }
///     };
template <class M>
struct tile_rule {
  using is_missing = void;
};

/// The rule of elementwise modules.
struct tile_pointwise {
  template <class M, class X>
  static auto forward(const M& m, X&& x, const tile_place&) {
    return m(std::forward<X>(x));
  }
};

/// Modules one after the other, as tile_steps() makes them: references to members, and modules themselves.
template <class... A>
struct tile_chain {
  std::tuple<A...> modules;
};
/// The sum of two chains, as tile_sum() makes it.
template <class A, class B>
struct tile_branches {
  A first;
  B second;
};

namespace detail {

/// A member is referred to; a temporary module is kept.
template <class A>
using tile_step = std::conditional_t<std::is_lvalue_reference_v<A>, const std::remove_reference_t<A>&, A>;

}  // namespace detail

/// Says that modules follow one another; none: the input itself. See tile_rule.
template <class... A>
tile_chain<detail::tile_step<A>...> tile_steps(A&&... modules) {
  return {std::tuple<detail::tile_step<A>...>(std::forward<A>(modules)...)};
}
/// Says that two branches, each from tile_steps(), are fed with the same image and that their results are added.
template <class... A, class... B>
tile_branches<tile_chain<A...>, tile_chain<B...>> tile_sum(tile_chain<A...> first, tile_chain<B...> second) {
  return {std::move(first), std::move(second)};
}

namespace detail {

template <class M>
concept has_tile_windows = requires(const M& m) { tile_rule<M>::windows(m); };
template <class M>
concept has_tile_steps = requires(const M& m) { tile_rule<M>::steps(m); };

/// Of half and bfloat16 too.
template <class T>
T outside_value(double v) {
  return static_cast<T>(static_cast<compute_type<T>>(v));
}

template <class T, device D>
tensor<T, 4, D> counts_along(int axis, const ops::pool_axis& a, const tile_interval& results, bool padding_counts) {
  extents<4> shape = sinter::detail::ones_extents<4>();
  shape[axis] = results.size();
  tensor<T, 4, cpu> counts = tensor<T, 4, cpu>::uninitialized(shape);
  for (index_t o = results.begin; o < results.end; ++o)
    sinter::detail::access::data(counts)[o - results.begin] =
        static_cast<T>(static_cast<float>(a.counted(o, padding_counts)));
  return counts.template to<D>();
}

}  // namespace detail

template <>
struct tile_rule<relu> : tile_pointwise {};
template <>
struct tile_rule<sigmoid> : tile_pointwise {};
template <>
struct tile_rule<tanh> : tile_pointwise {};
template <>
struct tile_rule<gelu> : tile_pointwise {};
template <>
struct tile_rule<silu> : tile_pointwise {};
template <>
struct tile_rule<softplus> : tile_pointwise {};
template <>
struct tile_rule<leaky_relu> : tile_pointwise {};
template <>
struct tile_rule<elu> : tile_pointwise {};
/// Its mask is one number for each channel of each picture, the same in all tiles.
template <class Kind>
struct tile_rule<dropout2d<Kind>> : tile_pointwise {};

/// The mask of a tile is its part of the mask of the whole.
template <class Kind>
struct tile_rule<dropout<Kind>> {
  template <class X>
  static auto forward(const dropout<Kind>& m, X&& x, const tile_place& place) {
    if constexpr (std::is_same_v<Kind, plain>) {
      return m(std::forward<X>(x));
    } else {
      using T = element_of<X>;
      if (!m.state.training) return sinter::eval(std::forward<X>(x));
      const auto mask = sinter::detail::draw_in_window<device_of<X>>("dropout", m.source,
                                                                     sinter::detail::kept_numbers<T>("dropout", m.p),
                                                                     place.shape, x.shape(), place.row, place.column);
      return sinter::eval(std::forward<X>(x) * mask);
    }
  }
};

template <class T, device D, class Kind, bool Bias>
struct tile_rule<conv2d<T, D, Kind, Bias>> {
  using layer = conv2d<T, D, Kind, Bias>;
  static tile_windows windows(const layer& m) { return {along(m, 0), along(m, 1)}; }
  static extents<4> shape(const layer& m, const extents<4>& x) {
    if (m.options.padding_mode != pad_mode::constant)
      sinter::detail::refuse<value_error>(
          {"tile_parallel: a conv2d with another padding_mode than pad_mode::constant; tiles have zeros around the "
           "image"});
    const ops::conv_op<2, Bias> op(m.options);
    if constexpr (Bias) return op.shape(x, m.weight.shape(), m.bias.shape());
    else return op.shape(x, m.weight.shape());
  }
  static double outside(const layer&) { return 0; }
  template <class X>
  static auto forward(const layer& m, const X& x, const tile_place&) {
    conv_options<2> options = m.options;
    options.padding = 0;
    if constexpr (Bias) return sinter::conv2d(x, m.weight, m.bias, options);
    else return sinter::conv2d(x, m.weight, options);
  }

 private:
  static tile_window along(const layer& m, int axis) {
    const index_t span = m.options.dilation[axis] * (m.weight.extent(axis + 2) - 1);
    return {span + 1, m.options.stride[axis], m.options.padding.before(axis, span)};
  }
};

template <>
struct tile_rule<max_pool2d> {
  static tile_windows windows(const max_pool2d& m) { return {along(m, 0), along(m, 1)}; }
  static extents<4> shape(const max_pool2d& m, const extents<4>& x) {
    return sinter::detail::max_pool_of<2>(m.kernel, m.options, ops::save_places::never).shape(x);
  }
  static double outside(const max_pool2d&) { return -std::numeric_limits<double>::infinity(); }
  template <class X>
  static auto forward(const max_pool2d& m, const X& x, const tile_place&) {
    max_pool_options<2> options = m.options;
    options.padding = 0;
    options.ceil_mode = false;
    return sinter::max_pool2d(x, m.kernel, options);
  }

 private:
  static tile_window along(const max_pool2d& m, int axis) {
    return {m.options.dilation[axis] * (m.kernel[axis] - 1) + 1, m.options.stride.of(m.kernel)[axis],
            m.options.padding[axis]};
  }
};

/// Sums, divided by what the windows of the whole image count.
template <>
struct tile_rule<avg_pool2d> {
  static tile_windows windows(const avg_pool2d& m) { return {along(m, 0), along(m, 1)}; }
  static extents<4> shape(const avg_pool2d& m, const extents<4>& x) {
    return sinter::detail::avg_pool_of<2>(m.kernel, m.options).shape(x);
  }
  static double outside(const avg_pool2d&) { return 0; }
  template <class X>
  static auto forward(const avg_pool2d& m, const X& x, const tile_place& place) {
    using T = element_of<X>;
    using D = device_of<X>;
    avg_pool_options<2> options = m.options;
    options.padding = 0;
    options.ceil_mode = false;
    options.divisor_override = 1;
    tensor<T, 4, D> counts[2];
    for (int axis = 0; axis < 2; ++axis) {
      const index_t first = axis == 0 ? place.row : place.column;
      const tile_window w = along(m, axis);
      const index_t results = (x.shape()[axis + 2] - w.reach) / w.stride + 1;
      counts[axis] = counts_of<T, D>(m, axis, place.input[axis + 2], {first, first + results});
    }
    return sinter::avg_pool2d(x, m.kernel, options) / (counts[0] * counts[1]);
  }

 private:
  static tile_window along(const avg_pool2d& m, int axis) {
    return {m.kernel[axis], m.options.stride.of(m.kernel)[axis], m.options.padding[axis]};
  }
  template <class T, device D>
  static tensor<T, 4, D> counts_of(const avg_pool2d& m, int axis, index_t extent, const detail::tile_interval& of) {
    if (m.options.divisor_override)
      return full<T, D>(sinter::detail::ones_extents<4>(), axis == 0 ? *m.options.divisor_override : 1);
    ops::pool_axis a;
    a.in = extent;
    a.kernel = m.kernel[axis];
    a.stride = m.options.stride.of(m.kernel)[axis];
    a.padding = m.options.padding[axis];
    return detail::counts_along<T, D>(axis + 2, a, of, m.options.count_include_pad);
  }
};

namespace detail {

/// Of paddings with one value: a window of one element.
template <class M>
struct padding_rule {
  static tile_windows windows(const M& m) { return {{1, 1, m.amounts.before(1)}, {1, 1, m.amounts.before(0)}}; }
  static extents<4> shape(const M& m, const extents<4>& x) {
    return ops::pad_op<float>(m.amounts, pad_mode::constant, 0).shape(x);
  }
  static double outside(const M& m) {
    if constexpr (requires { m.value; }) return m.value;
    else return 0;
  }
  template <class X>
  static auto forward(const M&, const X& x, const tile_place&) {
    return x;
  }
};

}  // namespace detail

template <>
struct tile_rule<zero_pad2d> : detail::padding_rule<zero_pad2d> {};
template <>
struct tile_rule<constant_pad2d> : detail::padding_rule<constant_pad2d> {};

/// In training the moments are those of all tiles; see parallel/tile_norm.hpp.
template <class T, device D, class Kind, bool Affine, bool Running>
struct tile_rule<batch_norm2d<T, D, Kind, Affine, Running>> : tile_pointwise {};

template <class... M>
struct tile_rule<sequential<M...>> {
  static auto steps(const sequential<M...>& m) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
      return tile_steps(m.template get<I>()...);
    }(std::index_sequence_for<M...>{});
  }
};

namespace detail {

template <class M>
inline constexpr bool merges_moments = false;
/// Only infer() always takes running moments.
template <class T, device D, class Kind, bool Affine, bool Running>
inline constexpr bool merges_moments<batch_norm2d<T, D, Kind, Affine, Running>> =
    !Running || !std::is_same_v<Kind, plain>;

template <class>
inline constexpr bool is_tile_branches = false;
template <class A, class B>
inline constexpr bool is_tile_branches<tile_branches<A, B>> = true;

/// Can a module run in the statement of the one before it?
template <class M>
inline constexpr bool is_tile_pointwise = !has_tile_windows<M> && !is_tile_branches<M> && !merges_moments<M>;

/// A chain as one tuple, in which no module consists of others, but for sums.
template <class... A>
auto flat_chain(const tile_chain<A...>& c);
template <class A>
auto flat_steps(const bare<A>& a) {
  using M = bare<A>;
  if constexpr (has_tile_steps<M>) {
    static_assert(std::is_lvalue_reference_v<A>,
                  "sinter: tile_steps refers to modules that consist of others; name a member, no temporary one");
    return flat_chain(tile_rule<M>::steps(a));
  } else {
    return std::tuple<A>(a);
  }
}
template <class A, class B>
auto flat_sum(const tile_branches<A, B>& sum) {
  auto first = flat_chain(sum.first);
  auto second = flat_chain(sum.second);
  using branches = tile_branches<decltype(first), decltype(second)>;
  return std::tuple<branches>(branches{std::move(first), std::move(second)});
}
template <class... A>
auto flat_chain(const tile_chain<A...>& c) {
  const auto flat = []<class B>(const auto& m, std::type_identity<B>) {
    if constexpr (is_tile_branches<bare<B>>) return flat_sum(m);
    else return flat_steps<B>(m);
  };
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::tuple_cat(flat(std::get<I>(c.modules), std::type_identity<A>{})...);
  }(std::index_sequence_for<A...>{});
}

template <class... A>
struct first_not_void {
  using type = void;
};
template <class A, class... Rest>
struct first_not_void<A, Rest...>
    : std::conditional_t<std::is_void_v<A>, first_not_void<Rest...>, std::type_identity<A>> {};

/// The first module in M without a rule, or void.
template <class M>
struct without_tile_rule {
  using type = void;
};
template <class M>
  requires requires { typename tile_rule<M>::is_missing; }
struct without_tile_rule<M> {
  using type = M;
};
template <class M>
  requires has_tile_steps<M>
struct without_tile_rule<M> : without_tile_rule<decltype(tile_rule<M>::steps(std::declval<const M&>()))> {};
template <class... A>
struct without_tile_rule<tile_chain<A...>> : first_not_void<typename without_tile_rule<bare<A>>::type...> {};
template <class A, class B>
struct without_tile_rule<tile_branches<A, B>>
    : first_not_void<typename without_tile_rule<A>::type, typename without_tile_rule<B>::type> {};

}  // namespace detail
}  // namespace sinter::nn
