// sinter/ops/embedding.hpp: rows of a table, looked up by ids.
#pragma once

#include <limits>
#include <optional>

#include "sinter/expr/reducer.hpp"
#include "sinter/grad/row_gradient.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/ops/gather.hpp"

namespace sinter {

template <class...>
struct ids_and_table_with_elements_of_type;
template <int>
struct ids_of_rank;
struct use_integer_ids_and_a_floating_table;
struct use_ids_of_rank_7_or_less;

/// How embedding() treats its table in backward; as in torch.nn.functional.embedding.
///
///     embedding(ids, table, {.padding_idx = 0});
struct embedding_options {
  std::optional<index_t> padding_idx =
      std::nullopt;                 ///< this row gets no gradient; counted from the end where negative
  bool scale_grad_by_freq = false;  ///< the gradient of a row is divided by how often its id is among the ids
};

namespace detail {

template <class I, class W>
constexpr auto find_embedding_mistake() {
  if constexpr (!is_fitting<beside_mistake<I, W>>) return beside_mistake<I, W>{};
  else if constexpr (!integer_element<element_of<I>> || !floating_element<element_of<W>>)
    return mistake<ids_and_table_with_elements_of_type<element_of<I>, element_of<W>>,
                   use_integer_ids_and_a_floating_table>{};
  else if constexpr (rank_of<W> != 2) return mistake<table_of_rank<rank_of<W>>, use_a_table_of_rank_2>{};
  else if constexpr (rank_of<I> >= max_rank) return mistake<ids_of_rank<rank_of<I>>, use_ids_of_rank_7_or_less>{};
  else return fitting<element_of<W>>{};
}
static_assert(max_rank == 8);
template <class I, class W>
using embedding_mistake = decltype(find_embedding_mistake<bare<I>, bare<W>>());

/// Stands for a padding row where there is none.
inline constexpr index_t no_padding = -1;

/// The padding row of a table of so many rows, counted from the front.
inline index_t checked_padding(const char* op, const std::optional<index_t>& padding, index_t rows) {
  if (!padding) return no_padding;
  if (*padding < -rows || *padding >= rows)
    refuse<index_error>({op, ": padding_idx ", *padding, " is out of range [", -rows, ", ", rows, ")"});
  return *padding < 0 ? *padding + rows : *padding;
}

/// Places among ids have 31 bits.
inline void check_id_count(const char* op, index_t n) {
  if (n > std::numeric_limits<std::int32_t>::max())
    refuse<shape_error>({op, ": ", n, " ids are more than 2^31 - 1; look up slices of them"});
}

}  // namespace detail

namespace ops {

/// y[i...] = table[ids[i...]]; ids are checked before.
struct embedding_op : kernel_op {
  static constexpr const char* name = "embedding";
  static constexpr unsigned grad_uses[1] = {uses::second};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int operand) { return operand == 0 ? take::strided : take::dense; }
  static constexpr int rank(int, int of_ids) { return of_ids + 1; }

  index_t padding;    ///< the row that gets no gradient, or no_padding
  bool by_frequency;  ///< gradients of rows are means in place of sums
  embedding_op(index_t row, bool mean) : padding(row), by_frequency(mean) {}

  template <int R>
  extents<R + 1> shape(const extents<2>& table, const extents<R>& ids) const {
    extents<R + 1> y;
    for (int d = 0; d < R; ++d) y[d] = ids[d];
    y[R] = table[1];
    return y;
  }
  template <class W, class I>
  static constexpr auto mistake() {
    return sinter::detail::embedding_mistake<I, W>{};
  }
};

/// Rows whose norm is above max_norm are scaled to it, in place, where their id is among n: kernels<renorm_op,
/// D>::run(op, table, ids), ids dense, is false if certainly nothing was written.
struct renorm_op {
  template <device D>
  static constexpr bool has_kernels_on = true;

  double max_norm;
  double norm_type;  ///< p of the norm (sum |x|^p)^(1/p), infinity for the largest |x|
  /// What a row is multiplied by, as in torch.embedding_renorm_. Norms are compared as a C holds them, so that a row
  /// that was scaled is short enough.
  template <class C>
  SINTER_WORD C factor(C norm) const {
    return norm > static_cast<C>(max_norm) ? static_cast<C>(max_norm / (static_cast<double>(norm) + 1e-7)) : C(1);
  }

  /// The norm of a row: its elements are pushed into states, which are merged, and finished. Of other norms than the
  /// Euclidean one a state has one number.
  using squares = sinter::detail::norm_reducer<double>;
  using state = squares::state;
  SINTER_WORD bool is_largest() const { return norm_type > std::numeric_limits<double>::max(); }
  SINTER_WORD void push(state& s, double x) const {
    if (norm_type == 2) return squares::push(s, x, 0);
    const double size = math::abs(x);
    s = merge(s, {0, is_largest() || norm_type == 1 ? size : math::pow(size, norm_type), 0});
  }
  SINTER_WORD state merge(const state& a, const state& b) const {
    if (is_largest()) return a.middle < b.middle ? b : a;
    return squares::merge(a, b);
  }
  SINTER_WORD double finish(const state& s) const {
    if (norm_type == 2) return squares::finish(s);
    return is_largest() || norm_type == 1 ? s.middle : math::pow(s.middle, 1 / norm_type);
  }
};

}  // namespace ops

namespace detail {

template <class I, class W>
using embedding_of = kernel_of<ops::embedding_op, W, tensor<std::int64_t, bare<I>::rank, device_of<I>>>;

}  // namespace detail

/// The rows of a table by their numbers: ids (…) of any integer type, and rank 0 to 7, and a floating-point table (V,E)
/// => (…,E), as torch.nn.functional.embedding. Derivative: to row v of the table the sum of g over the places where v
/// stands, in their order, gathered in float for half and bfloat16; the same bits for any number of threads. The row
/// `padding_idx` gets none; with scale_grad_by_freq sums are divided by the number of places. See row_sparse() for
/// tables of which steps look up few rows. Errors: index_error for an id outside [0, V), on a GPU where the host next
/// waits for it, until when zeros stand for the row, and for a padding_idx outside [-V, V).
///
///     tensor rows = embedding(ids, table);                               // (batch, time) => (batch, time, width)
///     variable loss = sum(embedding(ids, weight, {.padding_idx = 0}));  // row 0 stays as it is
template <class I, class W>
  requires(detail::is_fitting<detail::embedding_mistake<I, W>>)
detail::embedding_of<I, W> embedding(const I& ids, W&& table, const embedding_options& o = {}) {
  detail::check_defined("embedding", table);
  const index_t rows = table.shape()[0];
  auto places = detail::checked_indices("embedding", ids, rows, "id");
  detail::check_id_count("embedding", places.numel());
  return detail::make_kernel(
      ops::embedding_op(detail::checked_padding("embedding", o.padding_idx, rows), o.scale_grad_by_freq),
      std::forward<W>(table), std::move(places));
}
template <class I, class W, class Problem = typename detail::embedding_mistake<I, W>::problem,
          class Fix = typename detail::embedding_mistake<I, W>::fix>
void embedding(I&&, W&&, const embedding_options& = {}) = delete;

}  // namespace sinter
