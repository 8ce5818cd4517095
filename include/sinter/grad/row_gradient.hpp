// sinter/grad/row_gradient.hpp: the gradient of a table of which few rows are looked up, as those rows.
#pragma once

#include "sinter/grad/variable.hpp"

namespace sinter {

template <int>
struct table_of_rank;
struct use_a_table_of_rank_2;
struct tracked_table;
struct pass_its_dot_value;

/// The gradient of a table (V,E) that is 0 but for n rows: their numbers, which differ, and their values (n,E). -1
/// stands for no row, and its values are 0: GPUs, which do not wait for the number of different ids, leave such.
template <class T, device D = cpu>
struct row_gradient {
  tensor<std::int64_t, 1, D> rows;
  tensor<T, 2, D> values;

  bool defined() const noexcept { return values.defined(); }
};

namespace ops {

/// What moves between rows of a table and as many values: kernels<move_rows, D>::run(op, table, rows, values), with
/// rows as in a row_gradient.
struct move_rows {
  enum class way {
    take,  ///< values = rows of the table; 0 where there is no row
    put,   ///< rows of the table = values
    add,   ///< rows of the table += values
  };
  template <device D>
  static constexpr bool has_kernels_on = true;
  way to;
};

/// Values (n,E) of n numbers of rows below `rows`, of which several may be the same, as a row_gradient: sums in order
/// of place. kernels<sum_rows, D>::run(op, ids, values).
struct sum_rows {
  template <device D>
  static constexpr bool has_kernels_on = true;
  index_t rows;
};

}  // namespace ops

namespace detail {

template <class T, device D>
void move_rows(ops::move_rows::way to, const tensor<T, 2, D>& table, const row_gradient<T, D>& g) {
  kernels<ops::move_rows, D>::run({to}, table, g.rows, g.values);
}

/// The sum of gradients of a table of so many rows.
template <class T, device D>
row_gradient<T, D> joined_rows(index_t rows, const std::vector<row_gradient<T, D>>& parts) {
  index_t n = 0;
  for (const auto& part : parts) n += part.rows.numel();
  const auto ids = tensor<std::int64_t, 1, D>::uninitialized({{n}});
  const auto values = tensor<T, 2, D>::uninitialized({{n, parts.front().values.shape()[1]}});
  n = 0;
  for (const auto& part : parts) {
    const index_t begin = n;
    n += part.rows.numel();
    write(part.rows, ids.slice(0, begin, n));
    write(part.values, values.slice(0, begin, n));
  }
  return kernels<ops::sum_rows, D>::run({rows}, ids, values);
}

/// The state of a table whose gradient is held by rows while nothing but lookups adds to it.
template <class T, device D>
struct row_state final : typed_state<T, 2, D> {
  using base = typed_state<T, 2, D>;
  row_gradient<T, D> rows;       ///< of the pass that runs; undefined where it is dense
  row_gradient<T, D> kept_rows;  ///< of finished passes, likewise

  row_state(const extents<2>& s, const extents<2>& strides);
  /// Adds to the gradient of the pass that runs.
  void add_rows(row_gradient<T, D> more);

  void* gradient(bool& add) override;
  void drop_gradient() noexcept override;
  void add_to_kept() override;
  void keep_gradient() noexcept override;
  void* kept_gradient() const noexcept override;
  void drop_kept() noexcept override;
  storage_ptr copy_of_kept() const override;
  void restore(const storage_ptr& before) noexcept override;
  void make_dense() override;

 private:
  tensor<T, 2, D> dense_of(const row_gradient<T, D>& g) const;
};

// Not inside the class, for the same reason as those of typed_state.

template <class T, device D>
row_state<T, D>::row_state(const extents<2>& s, const extents<2>& strides) : base(s, strides) {
  this->by_rows = true;
}
template <class T, device D>
tensor<T, 2, D> row_state<T, D>::dense_of(const row_gradient<T, D>& g) const {
  const auto all = tensor<T, 2, D>::uninitialized(this->shape, this->dense);
  write(constant_expr<T>{T(0)}, all);
  move_rows(ops::move_rows::way::put, all, g);
  return all;
}
template <class T, device D>
void row_state<T, D>::add_rows(row_gradient<T, D> more) {
  if (!this->has_grad) rows = std::move(more);
  else if (rows.defined()) rows = joined_rows<T, D>(this->shape[0], {rows, more});
  else move_rows(ops::move_rows::way::add, this->grad, more);
  this->has_grad = true;
}
template <class T, device D>
void* row_state<T, D>::gradient(bool& add) {
  if (!rows.defined()) return base::gradient(add);
  const auto those = std::exchange(rows, {});
  this->has_grad = false;
  const tensor<T, 2, D>& all = this->sum();
  move_rows(ops::move_rows::way::put, all, those);
  add = true;
  return access::data(all);
}
template <class T, device D>
void row_state<T, D>::drop_gradient() noexcept {
  rows = {};
  base::drop_gradient();
}
template <class T, device D>
void row_state<T, D>::add_to_kept() {
  if (this->at_home && rows.defined()) {
    bool add = false;
    gradient(add);
  }
  if (rows.defined()) {
    if (!this->has_kept) return;
    if (kept_rows.defined()) {
      rows = joined_rows<T, D>(this->shape[0], {kept_rows, rows});
    } else {
      move_rows(ops::move_rows::way::add, this->kept, rows);
      note_write(*access::storage_of(this->kept).get());
      rows = {};
    }
  } else if (kept_rows.defined()) {  // the sum is dense, and is kept as that of a first pass
    move_rows(ops::move_rows::way::add, this->grad, kept_rows);
    kept_rows = {};
    this->has_kept = false;
  } else {
    base::add_to_kept();
  }
}
template <class T, device D>
void row_state<T, D>::keep_gradient() noexcept {
  if (!rows.defined()) return base::keep_gradient();
  kept_rows = std::exchange(rows, {});
  this->has_kept = true;
  drop_gradient();
}
template <class T, device D>
void* row_state<T, D>::kept_gradient() const noexcept {
  return kept_rows.defined() ? nullptr : base::kept_gradient();
}
template <class T, device D>
void row_state<T, D>::drop_kept() noexcept {
  kept_rows = {};
  base::drop_kept();
}
template <class T, device D>
storage_ptr row_state<T, D>::copy_of_kept() const {
  return kept_rows.defined() ? access::storage_of(dense_of(kept_rows)) : base::copy_of_kept();
}
template <class T, device D>
void row_state<T, D>::restore(const storage_ptr& before) noexcept {
  kept_rows = {};
  base::restore(before);
}
template <class T, device D>
void row_state<T, D>::make_dense() {
  if (!kept_rows.defined()) return;
  this->kept = dense_of(kept_rows);
  kept_rows = {};
}

/// The state of a variable, where its gradient may be held by rows; else null.
template <class T, device D>
row_state<T, D>* rows_in(const state_ptr& s) {
  return s && s->by_rows ? static_cast<row_state<T, D>*>(s.get()) : nullptr;
}

template <class E>
constexpr auto find_row_sparse_mistake() {
  if constexpr (!expression<E>) return not_operands{};
  else if constexpr (is_tracked_v<E>) return mistake<tracked_table, pass_its_dot_value>{};
  else if constexpr (E::rank != 2) return mistake<table_of_rank<E::rank>, use_a_table_of_rank_2>{};
  else return fitting<element_of<E>>{};
}
template <class E>
using row_sparse_mistake = decltype(find_row_sparse_mistake<bare<E>>());

[[noreturn]] SINTER_SHARED_COLD void refuse_row_gradient(bool is_there);
SINTER_SHARED_COLD void check_row_sparse(const extents<2>& shape, bool is_contiguous);
#if SINTER_DEFINES
[[noreturn]] SINTER_SHARED_COLD void refuse_row_gradient(bool is_there) {
  refuse<autograd_error>({"row_grad: ", is_there ? "the gradient of the table is dense; it is read by grad()"
                                                 : "the table has no gradient; run backward() first"});
}
SINTER_SHARED_COLD void check_row_sparse(const extents<2>& shape, bool is_contiguous) {
  if (!is_contiguous)
    refuse<value_error>({"row_sparse: the rows of a table of shape ", shape,
                         " do not lie one behind the other; pass its contiguous()"});
}
#endif  // SINTER_DEFINES

/// A leaf with this value, whose gradient is held as that of another leaf is.
template <class To, class From>
To leaf_like(const From& other, const typename To::tensor_type& value) {
  if constexpr (To::rank == 2) {
    const state_ptr& s = access::state_of(other);
    if (s && s->by_rows) return row_sparse(value);
  }
  return To(value);
}

}  // namespace detail

/// A variable over a table (V,E) of which steps look up few rows: what embedding() and embedding_bag() add to its
/// gradient is held as a row_gradient, in memory and time of these rows. nn::embedding makes its weight so where
/// `.sparse` is set. optim::sgd and optim::adagrad step such rows alone, clipping and nn::distributed read them alone;
/// other optimizers refuse the variable. grad() makes the gradient dense, as does all else that adds to it, such as a
/// tied output layer.
///
/// PyTorch says `sparse` at each lookup. Here the table has it, so that optimizers and ranks know it before the first
/// step. Errors: value_error for a table that is not contiguous.
///
///     variable table = row_sparse(vectors);
///     sum(embedding(ids, table)).backward();
///     const auto [rows, values] = row_grad(table);
template <class E>
  requires(detail::is_fitting<detail::row_sparse_mistake<E>>)
variable<element_of<E>, 2, device_of<E>> row_sparse(const E& table) {
  using T = element_of<E>;
  using D = device_of<E>;
  const tensor<T, 2, D> value = eval(table);
  detail::check_defined("row_sparse", value);
  detail::check_row_sparse(value.shape(), value.is_contiguous());
  return detail::access::make_variable<1>(
      value, detail::state_ptr(new detail::row_state<T, D>(value.shape(), value.strides())));
}
template <class E, class Problem = typename detail::row_sparse_mistake<E>::problem,
          class Fix = typename detail::row_sparse_mistake<E>::fix>
void row_sparse(const E&) = delete;

/// The gradient of a row_sparse() variable. Its tensors show what clipping does to it. Errors: autograd_error where
/// there is none, and where it is dense.
template <class T, auto S, device D>
  requires(variable<T, S, D>::rank == 2)
row_gradient<T, D> row_grad(const variable<T, S, D>& table) {
  const auto* const s = detail::rows_in<T, D>(detail::access::state_of(table));
  if (s == nullptr || !s->kept_rows.defined()) detail::refuse_row_gradient(table.has_grad());
  return s->kept_rows;
}

}  // namespace sinter
