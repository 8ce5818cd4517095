// sinter/ops/detail/scatter.hpp: the op that writes elements along an axis at indices, its derivatives, and what may be
// given to the functions that are made of it.
#pragma once

#include "sinter/core/create.hpp"
#include "sinter/ops/detail/extreme.hpp"
#include "sinter/ops/gather.hpp"

namespace sinter {

// Names in messages.
struct use_a_source_of_the_rank_of_the_elements;

namespace ops {

/// x where no index points; there what a rule makes of x and of the elements of src that go there, in order. Without
/// include_self x has no part in it. Indices are checked before.
template <class Rule>
struct scatter_op : kernel_op {
  static constexpr const char* name = "scatter";
  static constexpr bool moves = std::is_same_v<Rule, scatter_rule::replace> || std::is_same_v<Rule, scatter_rule::add>;
  static constexpr bool multiplies = std::is_same_v<Rule, scatter_rule::multiply>;
  static constexpr unsigned reads =
      uses::third | (moves ? 0 : uses::first | uses::second) | (moves || multiplies ? 0 : uses::result);
  static constexpr unsigned grad_uses[2] = {reads, reads};
  static constexpr take takes(int) { return take::strided; }
  template <device D>
  static constexpr bool has_kernels_on = true;

  const char* called;
  int axis;
  bool include_self;
  scatter_op(const char* by, int along, bool self) : called(by), axis(along), include_self(self) {}

  template <int R>
  const extents<R>& shape(const extents<R>& x, const extents<R>&, const extents<R>&) const {
    return x;
  }
  template <class X, class S, class I>
  static constexpr auto mistake() {
    return sinter::detail::fitting<element_of<X>>{};
  }

  /// y(index) = value
  template <class T, int R, device D>
  void fill(const tensor<T, R, D>& y, const tensor<std::int64_t, R, D>& index, T value) const {
    const auto one = full<T, D>(sinter::detail::ones_extents<R>(), value).broadcast_to(index.shape());
    sinter::detail::kernels<scatter_by<scatter_rule::replace>, D>::run({axis}, y, index, one);
  }
  /// What stands for x at indices without include_self.
  template <class T>
  static constexpr T neutral() {
    using limits = std::numeric_limits<T>;
    if constexpr (std::is_same_v<Rule, scatter_rule::largest>)
      return limits::has_infinity ? T(-limits::infinity()) : limits::lowest();
    else if constexpr (std::is_same_v<Rule, scatter_rule::smallest>)
      return limits::has_infinity ? limits::infinity() : limits::max();
    else return T(multiplies ? 1 : 0);
  }

  template <int I, class T, int R, device D, class X, class S, class Y>
  tensor<T, R, D> grad(const tensor<T, R, D>& g, const X& x, const S& src, const tensor<std::int64_t, R, D>& index,
                       const Y& y) const {
    constexpr bool adds = std::is_same_v<Rule, scatter_rule::add>;
    if constexpr (I == 0 && (adds || multiplies)) {
      if (!include_self) return without_places(g, index);
      if constexpr (adds) return g;
      else return eval(g * cast<T>(products(ones<double, D>(x.shape()), src, index)));
    } else if constexpr (I == 0 && moves) {
      return without_places(g, index);
    } else if constexpr (moves) {
      return picked_from(g, index);
    } else if constexpr (multiplies) {
      return eval(picked_from(g, index) * cast<T>(products_of_others(x, src, index)));
    } else {
      return shared<I>(g, x, src, index, y);
    }
  }

 private:
  template <class T, int R, device D>
  tensor<T, R, D> picked_from(const tensor<T, R, D>& x, const tensor<std::int64_t, R, D>& index) const {
    return eval(sinter::detail::make_kernel(gather_op(called, axis), x, index));
  }
  template <class T, int R, device D>
  tensor<T, R, D> without_places(const tensor<T, R, D>& g, const tensor<std::int64_t, R, D>& index) const {
    const tensor<T, R, D> rest = g.clone();
    fill(rest, index, T(0));
    return rest;
  }

  /// start, times the elements of src that go to each place.
  template <class T, int R, device D>
  tensor<double, R, D> products(const tensor<double, R, D>& start, const tensor<T, R, D>& src,
                                const tensor<std::int64_t, R, D>& index) const {
    sinter::detail::kernels<scatter_by<scatter_rule::multiply>, D>::run({axis}, start, index, eval(cast<double>(src)));
    return start;
  }
  /// Of each element of src the product of all others that go to its place: those before it times those behind it. No
  /// element is divided by.
  template <class T, int R, device D>
  tensor<double, R, D> products_of_others(const tensor<T, R, D>& x, const tensor<T, R, D>& src,
                                          const tensor<std::int64_t, R, D>& index) const {
    const auto so_far = [&](const tensor<double, R, D>& start, const tensor<T, R, D>& of, const auto& at) {
      const auto factors = copy_of(of);
      sinter::detail::kernels<scatter_by<scatter_rule::multiply_and_tell>, D>::run({axis}, start, at, factors);
      return factors;
    };
    const auto start = include_self ? copy_of(x) : ones<double, D>(x.shape());
    const auto before = so_far(start, src, index);
    return eval(before * so_far(ones<double, D>(x.shape()), src.flip(axis), index.flip(axis)).flip(axis));
  }
  template <class T, int R, device D>
  static tensor<double, R, D> copy_of(const tensor<T, R, D>& x) {
    const auto copy = tensor<double, R, D>::uninitialized(x.shape());
    sinter::detail::write(cast<double>(x), copy);
    return copy;
  }

  /// g in equal parts to the elements that are the result.
  template <int I, class T, int R, device D>
  tensor<T, R, D> shared(const tensor<T, R, D>& g, const tensor<T, R, D>& x, const tensor<T, R, D>& src,
                         const tensor<std::int64_t, R, D>& index, const tensor<T, R, D>& y) const {
    const auto wins = [](const auto& one, const auto& best) { return sinter::detail::make_map(wins_op{}, one, best); };
    const tensor<float, R, D> winners = cast<float>(wins(x, y));
    if (!include_self) fill(winners, index, 0.f);
    const tensor<bool, R, D> chosen = wins(src, picked_from(y, index));
    sinter::detail::add_picked(winners, axis, index, eval(cast<float>(chosen)), sinter::detail::index_order::any);
    const tensor<T, R, D> part = g / cast<T>(winners);
    if constexpr (I == 1) return eval(where(chosen, picked_from(part, index), 0));
    const tensor<T, R, D> own = where(wins(x, y), part, 0);
    if (!include_self) fill(own, index, T(0));
    return own;
  }
};

}  // namespace ops

namespace detail {

template <class Rule, device D>
struct kernels<ops::scatter_op<Rule>, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::scatter_op<Rule>& op, const tensor<T, R, D>& y, const Epilogue*,
                      const tensor<T, R, D>& x, const tensor<T, R, D>& src, const tensor<std::int64_t, R, D>& index) {
    write(x, y);
    if (!op.include_self) op.fill(y, index, ops::scatter_op<Rule>::template neutral<T>());
    if constexpr (std::is_same_v<Rule, ops::scatter_rule::add>) {
      add_picked(y, op.axis, index, src, index_order::any);
    } else if constexpr (ops::scatter_op<Rule>::multiplies && narrow_element<T>) {
      const tensor<float, R, D> wide = cast<float>(y);
      kernels<ops::scatter_by<Rule>, D>::run({op.axis}, wide, index, eval(cast<float>(src)));
      write(cast<T>(wide), y);
    } else {
      kernels<ops::scatter_by<Rule>, D>::run({op.axis}, y, index, src);
    }
  }
};

/// A number is a line of one element where PyTorch counts axes.
template <class X, class I, bool OneAxis>
constexpr auto find_scatter_index_mistake() {
  if constexpr (expression<X> && expression<I>) {
    if constexpr (rank_of<X> == 0 && (rank_of<I> == 0 || (OneAxis && rank_of<I> == 1)) && same_device<X, I> &&
                  !reads_name<X> && !reads_name<I> && integer_element<element_of<I>>)
      return fitting<element_of<X>>{};
    else return find_index_mistake<X, I, OneAxis>();
  } else {
    return find_index_mistake<X, I, OneAxis>();
  }
}
/// e, where it has no axes with one.
template <class E>
auto as_line(const char* op, E&& e) {
  if constexpr (literal<E>) {
    return e;
  } else {
    check_defined(op, e);
    auto value = eval_to_read(std::forward<E>(e));
    if constexpr (rank_of<E> == 0) return value.reshape({1});
    else return value;
  }
}

/// Of what is written into x: a number that its elements hold, or elements of their type on their device.
template <class X, class S>
constexpr auto find_source_mistake() {
  if constexpr (literal<S>) {
    if constexpr (literal_fits<S, element_of<X>>) return fitting<element_of<X>>{};
    else
      return mistake<floating_literal_with_elements_of_type<element_of<X>>,
                     write_an_integer_literal_or_cast_the_tensor>{};
  } else if constexpr (!is_fitting<beside_mistake<X, S>>) {
    return beside_mistake<X, S>{};
  } else if constexpr (!std::is_same_v<element_of<X>, element_of<S>>) {
    return mistake<mixed_element_types<element_of<X>, element_of<S>>, convert_one_operand_with_cast>{};
  } else {
    return fitting<element_of<X>>{};
  }
}
template <class X, class S>
using source_mistake = decltype(find_source_mistake<X, S>());

/// Which elements a function of scatter_op takes.
enum class scatter_elements { all, numbers, reals };

template <class X, class I, class S, bool OneAxis, scatter_elements Elements>
constexpr auto find_scatter_mistake() {
  using index_check = decltype(find_scatter_index_mistake<X, I, OneAxis>());
  if constexpr (!is_fitting<index_check>) {
    return index_check{};
  } else if constexpr (Elements == scatter_elements::reals     ? !floating_element<element_of<X>>
                       : Elements == scatter_elements::numbers ? std::is_same_v<element_of<X>, bool>
                                                               : false) {
    return mistake<element_type_without_this_op<element_of<X>>, use_another_element_type_or_cast>{};
  } else if constexpr (!is_fitting<source_mistake<X, S>>) {
    return source_mistake<X, S>{};
  } else if constexpr (literal<S>) {
    return fitting<element_of<X>>{};
  } else if constexpr (rank_of<X> != rank_of<S>) {
    return mistake<operands_of_ranks<rank_of<X>, rank_of<S>>, use_a_source_of_the_rank_of_the_elements>{};
  } else {
    return fitting<element_of<X>>{};
  }
}
template <class X, class I, class S, bool OneAxis = false, scatter_elements Elements = scatter_elements::all>
using scatter_mistake = decltype(find_scatter_mistake<bare<X>, bare<I>, bare<S>, OneAxis, Elements>());
template <class X, class I, class S, bool OneAxis = false, scatter_elements Elements = scatter_elements::all>
concept scatters = is_fitting<scatter_mistake<X, I, S, OneAxis, Elements>>;

// Errors of shapes.
SINTER_SHARED void check_scatter_shapes(const char* op, int axis, shape_piece x, shape_piece index,
                                        const shape_piece* src);
SINTER_SHARED void check_slices_shape(const char* op, int axis, shape_piece expected, shape_piece src);
#if SINTER_DEFINES
SINTER_SHARED void check_scatter_shapes(const char* op, int axis, shape_piece x, shape_piece index,
                                        const shape_piece* src) {
  for (int d = 0; d < x.rank; ++d) {
    if (d != axis && index.extents[d] > x.extents[d])
      refuse<shape_error>({op, ": index of shape ", index, " is larger than x of shape ", x, " on axis ", d});
    if (src != nullptr && index.extents[d] > src->extents[d])
      refuse<shape_error>(
          {op, ": index of shape ", index, " is larger than the source of shape ", *src, " on axis ", d});
  }
}
SINTER_SHARED void check_slices_shape(const char* op, int axis, shape_piece expected, shape_piece src) {
  for (int d = 0; d < expected.rank; ++d)
    if (expected.extents[d] != src.extents[d])
      refuse<shape_error>({op, ": a source of shape ", src, "; x and the index on axis ", axis, " ask for ", expected});
}
#endif

/// The elements that go to places of this shape, of a source that is a number or has them.
template <class T, device D, class S, int R>
auto scatter_source(S&& src, const extents<R>& places) {
  if constexpr (literal<S>) {
    return full<T, D>(ones_extents<R>(), number<T>(src)).broadcast_to(places);
  } else {
    auto from = eval_to_read(std::forward<S>(src));
    for (int d = 0; d < R; ++d)
      if (from.shape()[d] != places[d]) from = from.slice(d, 0, places[d]);
    return from;
  }
}

/// The index along axis a with x's rank: as it is given, or with OneAxis the places of whole slices.
template <bool OneAxis, class X, class I, class S>
auto scatter_places(const char* op, const X& x, int a, const I& index, const S& src) {
  constexpr int R = rank_of<X>;
  const auto i = checked_indices(op, index, x.shape()[a]);
  const extents<R> shape = x.shape();
  if constexpr (OneAxis) {
    extents<R> line = ones_extents<R>(), places = shape;
    line[a] = places[a] = i.numel();
    if constexpr (expression<S>) {
      const extents<R> given = src.shape();
      check_slices_shape(op, a, {places.data(), R}, {given.data(), R});
    }
    return i.reshape(line).broadcast_to(places);
  } else if constexpr (literal<S>) {
    check_scatter_shapes(op, a, {shape.data(), R}, {i.shape().data(), R}, nullptr);
    return i;
  } else {
    const extents<R> given = src.shape();
    const shape_piece source{given.data(), R};
    check_scatter_shapes(op, a, {shape.data(), R}, {i.shape().data(), R}, &source);
    return i;
  }
}

/// x with src written to it along the axis.
template <class Rule, bool OneAxis, class X, class I, class S>
auto scattered(const char* op, X&& x, index_t axis, const I& index, S&& src, bool include_self = true) {
  if constexpr (rank_of<X> == 0) {
    return scattered<Rule, OneAxis>(op, as_line(op, std::forward<X>(x)), axis, as_line(op, index),
                                    as_line(op, std::forward<S>(src)), include_self)
        .reshape(extents<0>{});
  } else {
    check_defined(op, x);
    if constexpr (expression<S>) check_defined(op, src);
    const int a = checked_axis(op, axis, rank_of<X>);
    const auto at = scatter_places<OneAxis>(op, x, a, index, src);
    return eval(make_kernel(ops::scatter_op<Rule>(op, a, include_self), std::forward<X>(x),
                            scatter_source<element_of<X>, device_of<X>>(std::forward<S>(src), at.shape()), at));
  }
}

}  // namespace detail
}  // namespace sinter
