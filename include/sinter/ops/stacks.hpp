// sinter/ops/stacks.hpp: hstack, vstack, dstack and column_stack, tensors joined as rows, columns or layers, and
// hsplit, vsplit and dsplit, which part them.
#pragma once

#include "sinter/ops/concat.hpp"
#include "sinter/ops/split.hpp"

namespace sinter {
namespace detail {

/// Parts, each in the shape that `shaped` gives, joined along an axis.
template <class Part, class F>
auto join_shaped(const char* op, index_t axis, const std::vector<Part>& parts, const F& shaped) {
  std::vector<decltype(shaped(parts[0]))> all;
  for (const Part& p : parts) {
    check_defined(op, p);
    all.push_back(shaped(p));
  }
  return join<false>(op, axis, all);
}

inline constexpr auto as_row = [](const auto& x) {
  if constexpr (rank_of<decltype(x)> == 0) return x.reshape({1});
  else return x;
};
inline constexpr auto as_matrix_row = [](const auto& x) {
  if constexpr (rank_of<decltype(x)> < 2) return x.reshape({1, -1});
  else return x;
};
inline constexpr auto as_column = [](const auto& x) {
  if constexpr (rank_of<decltype(x)> < 2) return x.reshape({-1, 1});
  else return x;
};
inline constexpr auto as_layer = [](const auto& x) {
  if constexpr (rank_of<decltype(x)> < 2) return x.reshape({1, -1, 1});
  else if constexpr (rank_of<decltype(x)> == 2) return x.unsqueeze(2);
  else return x;
};

SINTER_SHARED part_ends ends_of_exact_parts(const char* op, index_t n, index_t count);
#if SINTER_DEFINES
SINTER_SHARED part_ends ends_of_exact_parts(const char* op, index_t n, index_t count) {
  if (count >= 1 && n % count != 0)
    refuse<shape_error>(
        {op, ": ", count, " parts of an axis of extent ", n, ", which is no multiple; see tensor_split"});
  return ends_of_equal_parts(op, n, count);
}
#endif

}  // namespace detail

// name(parts...), name(vector) and name({parts...}).
#define SINTER_STACK_FUNCTION(name, axis, shaped)                                                         \
  template <class... E>                                                                                   \
    requires(detail::is_fitting<detail::join_mistake<E...>>)                                              \
  auto name(const E&... parts) {                                                                          \
    using Part = detail::part_of<E...>;                                                                   \
    return detail::join_shaped(#name, axis, std::vector<Part>{detail::value_as<Part>(parts)...}, shaped); \
  }                                                                                                       \
  template <class Part>                                                                                   \
    requires(detail::is_tensor<Part> || detail::is_variable<Part>)                                        \
  auto name(const std::vector<Part>& parts) {                                                             \
    return detail::join_shaped(#name, axis, parts, shaped);                                               \
  }                                                                                                       \
  template <class Part>                                                                                   \
    requires(detail::is_tensor<Part> || detail::is_variable<Part>)                                        \
  auto name(std::initializer_list<Part> parts) {                                                          \
    return detail::join_shaped(#name, axis, std::vector<Part>(parts), shaped);                            \
  }                                                                                                       \
  template <class... E, class Problem = typename detail::join_mistake<E...>::problem,                     \
            class Fix = typename detail::join_mistake<E...>::fix>                                         \
  void name(E&&...) = delete;                                                                             \
  void name(detail::mixed_list);

/// Tensors one after another along axis 1, vectors and single elements along axis 0. Also of a vector, or of a list.
/// Derivative and errors as concat.
///
///     tensor wide = hstack(left, right);
SINTER_STACK_FUNCTION(hstack, (Part::rank < 2 ? 0 : 1), detail::as_row)

/// Tensors one after another along axis 0, vectors as rows. Also of a vector, or of a list. Derivative and errors as
/// concat.
///
///     tensor rows = vstack(first, second);
SINTER_STACK_FUNCTION(vstack, 0, detail::as_matrix_row)

/// Tensors one after another along axis 2: vectors (n,) as (1,n,1), matrices (n,m) as (n,m,1). Also of a vector, or of
/// a list. Derivative and errors as concat.
///
///     tensor image = dstack(red, green, blue);
SINTER_STACK_FUNCTION(dstack, 2, detail::as_layer)

/// Tensors one after another along axis 1, vectors as columns. Also of a vector, or of a list. Derivative and errors as
/// concat.
///
///     tensor table = column_stack(ages, heights);
SINTER_STACK_FUNCTION(column_stack, 1, detail::as_column)

#undef SINTER_STACK_FUNCTION

// name(x, count) and name(x, cuts) along an axis, of tensors of rank `least` or more.
#define SINTER_SPLIT_FUNCTION(name, least, axis)                                                            \
  template <class X>                                                                                        \
    requires(detail::has_axes<X, least>)                                                                    \
  std::vector<detail::evaluated<X>> name(X&& x, detail::whole count) {                                      \
    return detail::cut_into_parts(#name, std::forward<X>(x), axis,                                          \
                                  [&](index_t n) { return detail::ends_of_exact_parts(#name, n, count); }); \
  }                                                                                                         \
  template <class X>                                                                                        \
    requires(detail::has_axes<X, least>)                                                                    \
  std::vector<detail::evaluated<X>> name(X&& x, const std::vector<index_t>& cuts) {                         \
    return detail::cut_into_parts(#name, std::forward<X>(x), axis,                                          \
                                  [&](index_t n) { return detail::ends_of_cuts(#name, n, cuts); });         \
  }                                                                                                         \
  template <class X>                                                                                        \
    requires(detail::has_axes<X, least>)                                                                    \
  std::vector<detail::evaluated<X>> name(X&& x, std::initializer_list<index_t> cuts) {                      \
    return name(std::forward<X>(x), std::vector<index_t>(cuts));                                            \
  }                                                                                                         \
  SINTER_AXES_REJECTIONS(name, least)

/// Equal parts of x along axis 1, of a vector along axis 0, or the parts between cuts: tensor_split, for a number of
/// parts that divides the extent. Errors: shape_error if it does not, value_error for a count below 1 and for cuts that
/// fall.
///
///     const auto halves = hsplit(x, 2);
SINTER_SPLIT_FUNCTION(hsplit, 1, (rank_of<X> < 2 ? 0 : 1))

/// The same along axis 0.
///
///     const auto parts = vsplit(x, {2, 5});
SINTER_SPLIT_FUNCTION(vsplit, 2, 0)

/// The same along axis 2.
///
///     const auto channels = dsplit(image, 3);
SINTER_SPLIT_FUNCTION(dsplit, 3, 2)

#undef SINTER_SPLIT_FUNCTION

}  // namespace sinter
