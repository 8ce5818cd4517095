// sinter/ops/grids.hpp: meshgrid, cartesian_prod, broadcast_tensors and block_diag, tensors laid out against each
// other.
#pragma once

#include <array>
#include <tuple>

#include "sinter/core/create.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/detail/lines.hpp"
#include "sinter/ops/multiply.hpp"

namespace sinter {

template <int Most>
struct use_operands_of_rank_up_to;

/// Which axis of a meshgrid belongs to which of the first two tensors: ij, axis 0 to the first, or xy, axis 1, as in
/// pictures.
enum class indexing { ij, xy };

namespace detail {

/// Of operands of one element type and device, of rank Most or less.
template <int Most, class... E>
constexpr auto find_grid_mistake() {
  if constexpr (sizeof...(E) == 0 || sizeof...(E) > max_rank || !(expression<E> && ...)) return no_operands<E...>{};
  else if constexpr (!is_fitting<operand_check<E...>>) return operand_check<E...>{};
  else if constexpr ((reads_name<E> || ...))
    return mistake<value_that_let_names_in_a_kernel_of_its_own, evaluate_it_before_let>{};
  else if constexpr (((rank_of<E> > Most) || ...))
    return mistake<operands_of_ranks<rank_of<E>...>, use_operands_of_rank_up_to<Most>>{};
  else return fitting<literals_type<E...>>{};
}
template <int Most, class... E>
using grid_mistake = decltype(find_grid_mistake<Most, bare<E>...>());

template <class... E>
auto mesh(const char* op, indexing by, const E&... e) {
  constexpr int N = sizeof...(E);
  using Part = common_value<N, E...>;
  (check_defined(op, e), ...);
  const index_t extents_of[] = {e.shape().numel()...};
  const auto axis_of = [&](int i) { return by == indexing::xy && N > 1 && i < 2 ? 1 - i : i; };
  extents<N> whole;
  for (int i = 0; i < N; ++i) whole[axis_of(i)] = extents_of[i];
  int i = 0;
  const auto one = [&](const auto& x) {
    extents<N> line = ones_extents<N>();
    line[axis_of(i)] = extents_of[i];
    ++i;
    return value_as<Part>(eval_to_read(x).reshape(line.values).broadcast_to(whole.values));
  };
  return std::array<Part, std::size_t{N}>{one(e)...};
}

}  // namespace detail

/// Vectors of n, m, ... elements, each along its own axis of tensors (n,m,…), and the same everywhere along the others:
/// views of a tensor, copies of a variable. An operand of rank 0 is a vector of one. Derivative: the gradients are
/// added along the other axes. Up to 8 vectors.
///
///     const auto [rows, columns] = meshgrid(arange<float>(3), arange<float>(4));
template <class... E>
  requires(detail::is_fitting<detail::grid_mistake<1, E...>>)
auto meshgrid(const E&... e) {
  return detail::mesh("meshgrid", indexing::ij, e...);
}
/// The same with axis 1 for the first vector and axis 0 for the second one where that is asked for: (n) and (m) =>
/// (m,n).
///
///     const auto [x, y] = meshgrid(indexing::xy, linspace(0, 1, 5), linspace(0, 1, 9));
template <class... E>
  requires(detail::is_fitting<detail::grid_mistake<1, E...>>)
auto meshgrid(indexing by, const E&... e) {
  return detail::mesh("meshgrid", by, e...);
}

/// All combinations of elements of vectors, one from each, as rows, the last one changing fastest: (n), (m), ... =>
/// (n m …, number of vectors); of one vector it is that. Runs at once. Derivative: the gradients of all places are
/// added.
///
///     tensor pairs = cartesian_prod(ages, heights);
template <class... E>
  requires(detail::is_fitting<detail::grid_mistake<1, E...>>)
auto cartesian_prod(const E&... e) {
  const auto grids = detail::mesh("cartesian_prod", indexing::ij, e...);
  if constexpr (sizeof...(E) == 1) {
    return grids[0];
  } else {
    using Column = decltype(grids[0].flatten());
    std::vector<Column> columns;
    for (const auto& g : grids) columns.push_back(g.flatten());
    return stack(1, columns);
  }
}

/// Tensors of one element type in the shape to which all broadcast: views of tensors, copies of variables. Errors:
/// shape_error where shapes do not broadcast.
///
///     const auto [a, b] = broadcast_tensors(x, y);
template <class... E>
  requires(detail::is_fitting<detail::grid_mistake<max_rank, E...>>)
auto broadcast_tensors(const E&... e) {
  constexpr int R = detail::larger(rank_of<E>...);
  (detail::check_defined("broadcast_tensors", e), ...);
  extents<R> shape = detail::ones_extents<R>();
  ((shape = detail::broadcast_shapes("broadcast_tensors", shape, e.shape())), ...);
  return std::tuple{detail::eval_to_read(e).broadcast_to(shape.values)...};
}

/// Matrices along the diagonal of one, which is 0 beside them: (n,m), (k,l), ... => (n+k+…,m+l+…). Vectors are rows,
/// elements of rank 0 matrices of one. Runs at once. Derivative: each gets its block of g.
///
///     tensor both = block_diag(a, b);
template <class... E>
  requires(detail::is_fitting<detail::grid_mistake<2, E...>>)
auto block_diag(const E&... e) {
  using Part = detail::common_value<2, E...>;
  using T = element_of<Part>;
  using D = device_of<Part>;
  (detail::check_defined("block_diag", e), ...);
  const auto matrix = [](const auto& x) {
    const auto value = detail::eval_to_read(x);
    if constexpr (rank_of<decltype(value)> < 2) return detail::value_as<Part>(value.reshape({1, value.numel()}));
    else return detail::value_as<Part>(value);
  };
  const std::vector<Part> blocks{matrix(e)...};
  index_t columns = 0, before = 0;
  for (const Part& b : blocks) columns += b.shape()[1];
  std::vector<Part> rows;
  for (const Part& b : blocks) {
    const index_t n = b.shape()[0], m = b.shape()[1];
    rows.push_back(concat(1, std::vector<Part>{detail::value_as<Part>(zeros<T, D>({n, before})), b,
                                               detail::value_as<Part>(zeros<T, D>({n, columns - before - m}))}));
    before += m;
  }
  return concat(0, rows);
}

// What a function of such operands rejects.
#define SINTER_GRID_REJECTIONS(name, most)                                                  \
  template <class... E, class Problem = typename detail::grid_mistake<most, E...>::problem, \
            class Fix = typename detail::grid_mistake<most, E...>::fix>                     \
  void name(const E&...) = delete;
SINTER_GRID_REJECTIONS(meshgrid, 1)
SINTER_GRID_REJECTIONS(cartesian_prod, 1)
SINTER_GRID_REJECTIONS(broadcast_tensors, max_rank)
SINTER_GRID_REJECTIONS(block_diag, 2)
#define SINTER_WITHOUT_BRACES(name)                                \
  template <class E, class Problem = ::sinter::operands_in_braces, \
            class Fix = ::sinter::write_them_without_the_braces>   \
  void name(std::initializer_list<E>) = delete;
SINTER_WITHOUT_BRACES(block_diag)
SINTER_WITHOUT_BRACES(meshgrid)
struct write_indexing_xy_or_indexing_ij_in_front;
namespace detail {
struct indexing_in_braces {
  any_option indexing;
};
}  // namespace detail
template <expression A, expression B, class Problem = option_of_another_name,
          class Fix = write_indexing_xy_or_indexing_ij_in_front>
void meshgrid(const A&, const B&, const detail::indexing_in_braces&) = delete;
template <expression A, expression B, class Problem = option_of_another_name,
          class Fix = write_indexing_xy_or_indexing_ij_in_front>
void meshgrid(const A&, const B&, detail::any_text) = delete;
SINTER_WITHOUT_BRACES(cartesian_prod)
SINTER_WITHOUT_BRACES(broadcast_tensors)
SINTER_WITHOUT_BRACES(multi_dot)
#undef SINTER_WITHOUT_BRACES
#undef SINTER_GRID_REJECTIONS

}  // namespace sinter
