// sinter/ops/scatter.hpp: scatter, scatter_add and scatter_reduce write elements at indices, index_copy, index_fill,
// index_add and index_reduce whole slices.
#pragma once

#include "sinter/core/reduction.hpp"
#include "sinter/ops/detail/scatter.hpp"
#include "sinter/ops/divide.hpp"
#include "sinter/ops/multiply.hpp"

namespace sinter {
namespace detail {

/// How a scatter reduces. The mean is the sum, divided by how many there are.
template <class How>
struct scatter_how;
template <>
struct scatter_how<reduction::sum_t> {
  using rule = ops::scatter_rule::add;
};
template <>
struct scatter_how<reduction::mean_t> {
  using rule = ops::scatter_rule::add;
};
template <>
struct scatter_how<reduction::prod_t> {
  using rule = ops::scatter_rule::multiply;
};
template <>
struct scatter_how<reduction::max_t> {
  using rule = ops::scatter_rule::largest;
};
template <>
struct scatter_how<reduction::min_t> {
  using rule = ops::scatter_rule::smallest;
};
template <class How>
concept reduces_scatter = requires { typename scatter_how<How>::rule; };
template <class How>
inline constexpr scatter_elements reduced_elements =
    std::is_same_v<How, reduction::mean_t> ? scatter_elements::reals : scatter_elements::numbers;

template <bool OneAxis, class How, class X, class I, class S>
auto scatter_reduced(const char* op, X&& x, index_t axis, const I& index, S&& src, bool include_self) {
  using rule = typename scatter_how<How>::rule;
  using T = element_of<X>;
  if constexpr (rank_of<X> == 0) {
    return scatter_reduced<OneAxis, How>(op, as_line(op, std::forward<X>(x)), axis, as_line(op, index),
                                         as_line(op, std::forward<S>(src)), include_self)
        .reshape(extents<0>{});
  } else if constexpr (!std::is_same_v<How, reduction::mean_t>) {
    return scattered<rule, OneAxis>(op, std::forward<X>(x), axis, index, std::forward<S>(src), include_self);
  } else if constexpr (narrow_element<T>) {
    const auto wide = [](const auto& e) {
      if constexpr (literal<decltype(e)>) return static_cast<float>(e);
      else return eval(cast<float>(e));
    };
    return eval(cast<T>(scatter_reduced<OneAxis, How>(op, wide(x), axis, index, wide(src), include_self)));
  } else {
    constexpr int R = rank_of<X>;
    using D = device_of<X>;
    check_defined(op, x);
    if constexpr (expression<S>) check_defined(op, src);
    const int a = checked_axis(op, axis, R);
    const ops::scatter_op<rule> adding(op, a, include_self);
    const auto at = scatter_places<OneAxis>(op, x, a, index, src);
    const auto counts = ones<T, D>(x.shape());
    if (!include_self) adding.fill(counts, at, T(0));
    add_picked(counts, a, at, ones<T, D>(ones_extents<R>()).broadcast_to(at.shape()), index_order::any);
    const auto from = scatter_source<T, D>(std::forward<S>(src), at.shape());
    return eval(make_kernel(adding, std::forward<X>(x), from, at) / counts);
  }
}

}  // namespace detail

/// x with elements of src in place of others: y[index[i][j]][j] = src[i][j] for axis 0, y[i][index[i][j]] = src[i][j]
/// for axis 1, and so on, as torch.scatter. index has x's rank, any integer type, and extents at most x's on the other
/// axes and at most those of src; src has x's element type, or is a number, which then stands at every index. Of equal
/// indices the last one counts, on every device. Every element type; x of rank 0 is a line of one element. Runs at
/// once. Derivative: g to x, but 0 at the indices; to each element of src the g at its index, as in PyTorch also where
/// another one was written over it. Errors: shape_error, value_error for a number that the elements do not hold,
/// index_error as gather.
///
///     tensor one_hot = scatter(zeros<float>({n, 10}), 1, labels.unsqueeze(1), 1);
template <class X, class I, class S>
  requires detail::scatters<X, I, S>
auto scatter(X&& x, detail::whole axis, const I& index, S&& src) {
  return detail::scattered<ops::scatter_rule::replace, false>("scatter", std::forward<X>(x), axis, index,
                                                              std::forward<S>(src));
}

/// x with elements of src added at indices: as scatter, but all that go to one place are added to it, in order, so that
/// a sum is the same for any number of threads. Every element type but bool; half and bfloat16 sum in float.
/// Derivative: g to x; to each element of src the g at its index.
///
///     tensor per_class = scatter_add(zeros<float>({10}), 0, labels, losses);
template <class X, class I, class S>
  requires detail::scatters<X, I, S, false, detail::scatter_elements::numbers>
auto scatter_add(X&& x, detail::whole axis, const I& index, S&& src) {
  return detail::scattered<ops::scatter_rule::add, false>("scatter_add", std::forward<X>(x), axis, index,
                                                          std::forward<S>(src));
}

/// x with elements of src folded into others, as scatter_add adds them: `how` is reduction::sum, prod, mean, max or
/// min. With include_self = false the elements of x at the indices have no part in it; the others stay. NaN goes on in
/// max and min, which PyTorch calls amax and amin. Every element type but bool, the mean of floating point alone.
/// Derivative: that of the fold, for each of its elements; in equal parts to elements that are equal and largest or
/// smallest; for prod the product of the others, whatever they are, zeros too.
///
///     tensor highest = scatter_reduce(zeros<float>({10}), 0, labels, losses, reduction::max, false);
template <class X, class I, class S, detail::reduces_scatter How>
  requires detail::scatters<X, I, S, false, detail::reduced_elements<How>>
auto scatter_reduce(X&& x, detail::whole axis, const I& index, S&& src, [[maybe_unused]] How how,
                    bool include_self = true) {
  return detail::scatter_reduced<false, How>("scatter_reduce", std::forward<X>(x), axis, index, std::forward<S>(src),
                                             include_self);
}

/// x with the slices of src at index[0], index[1], ... along an axis: x (…,n,…), index (m,) of any integer type, src
/// (…,m,…) of x's element type. Of equal indices the last one counts. Runs at once. Derivative: as scatter. Errors:
/// shape_error, index_error as gather.
///
///     tensor patched = index_copy(table, 0, rows, w);
template <class X, class I, class S>
  requires(expression<S> && detail::scatters<X, I, S, true>)
auto index_copy(X&& x, detail::whole axis, const I& index, S&& src) {
  return detail::scattered<ops::scatter_rule::replace, true>("index_copy", std::forward<X>(x), axis, index,
                                                             std::forward<S>(src));
}
/// x with a number in its slices at index[0], index[1], ... along an axis. Derivative: g, but 0 in these slices.
/// Errors: value_error for a number that the elements do not hold, index_error as gather.
///
///     tensor without = index_fill(x, 1, columns, 0);
template <class X, class I, class S>
  requires(literal<S> && detail::scatters<X, I, S, true>)
auto index_fill(X&& x, detail::whole axis, const I& index, S value) {
  return detail::scattered<ops::scatter_rule::replace, true>("index_fill", std::forward<X>(x), axis, index, value);
}

/// x with alpha times the slices of src added to those at index[0], index[1], ... along an axis; in order, as
/// scatter_add. Every element type but bool. Runs at once. Derivative: g to x; alpha times the slices of g at the
/// indices to src. Errors: shape_error, value_error for an alpha that the elements do not hold, index_error as gather.
///
///     tensor sums = index_add(zeros<float>({10, 4}), 0, labels, x);
template <class X, class I, class S>
  requires(expression<S> && detail::scatters<X, I, S, true, detail::scatter_elements::numbers>)
auto index_add(X&& x, detail::whole axis, const I& index, S&& src,
               detail::number<compute_type<element_of<X>>> alpha = 1) {
  detail::check_defined("index_add", src);
  const compute_type<element_of<X>> by = alpha;
  const auto scaled = by == 1 ? detail::eval_to_read(src) : eval(src * by);
  return detail::scattered<ops::scatter_rule::add, true>("index_add", std::forward<X>(x), axis, index, scaled);
}

/// x with the slices of src folded into those at index[0], index[1], ... along an axis, as scatter_reduce folds
/// elements. Errors: shape_error, index_error as gather.
///
///     tensor means = index_reduce(zeros<float>({10, 4}), 0, labels, x, reduction::mean, false);
template <class X, class I, class S, detail::reduces_scatter How>
  requires(expression<S> && detail::scatters<X, I, S, true, detail::reduced_elements<How>>)
auto index_reduce(X&& x, detail::whole axis, const I& index, S&& src, [[maybe_unused]] How how,
                  bool include_self = true) {
  return detail::scatter_reduced<true, How>("index_reduce", std::forward<X>(x), axis, index, std::forward<S>(src),
                                            include_self);
}

// Rejections.
#define SINTER_SCATTER_REJECTIONS(name, one_axis, elements)                                         \
  template <class X, class I, class S,                                                              \
            class Problem = typename detail::scatter_mistake<X, I, S, one_axis, elements>::problem, \
            class Fix = typename detail::scatter_mistake<X, I, S, one_axis, elements>::fix>         \
  void name(X&&, index_t, I&&, S&&, auto&&...) = delete;
#define SINTER_SCATTER_REDUCE_REJECTIONS(name, one_axis)                                                         \
  template <class X, class I, class S, detail::reduces_scatter How,                                              \
            class Problem =                                                                                      \
                typename detail::scatter_mistake<X, I, S, one_axis, detail::reduced_elements<How>>::problem,     \
            class Fix = typename detail::scatter_mistake<X, I, S, one_axis, detail::reduced_elements<How>>::fix> \
  void name(X&&, index_t, I&&, S&&, How, bool = true) = delete;
SINTER_SCATTER_REJECTIONS(scatter, false, detail::scatter_elements::all)
SINTER_SCATTER_REJECTIONS(scatter_add, false, detail::scatter_elements::numbers)
SINTER_SCATTER_REJECTIONS(index_copy, true, detail::scatter_elements::all)
SINTER_SCATTER_REJECTIONS(index_fill, true, detail::scatter_elements::all)
SINTER_SCATTER_REJECTIONS(index_add, true, detail::scatter_elements::numbers)
SINTER_SCATTER_REDUCE_REJECTIONS(scatter_reduce, false)
SINTER_SCATTER_REDUCE_REJECTIONS(index_reduce, true)
SINTER_OPTION_AS_TEXT(scatter_reduce, write_reduction_sum_prod_mean_max_or_min, index_t, auto&&, auto&&)
SINTER_OPTION_AS_TEXT(index_reduce, write_reduction_sum_prod_mean_max_or_min, index_t, auto&&, auto&&)
#undef SINTER_SCATTER_REJECTIONS
#undef SINTER_SCATTER_REDUCE_REJECTIONS

}  // namespace sinter
