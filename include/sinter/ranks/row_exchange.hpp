// sinter/ranks/row_exchange.hpp: gradients that are held by rows, gathered from all ranks.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/grad/row_gradient.hpp"
#include "sinter/ops/in_place.hpp"
#include "sinter/ops/multiply.hpp"
#include "sinter/ranks/rank_state.hpp"

namespace sinter::nn::detail {

/// A row_sparse() table, free of its type.
class row_leaf {
 public:
  explicit row_leaf(sinter::detail::state_ptr s) : state(std::move(s)) {}
  virtual ~row_leaf() = default;
  row_leaf(const row_leaf&) = delete;
  row_leaf& operator=(const row_leaf&) = delete;

  /// Multiplies the gradient that is there already.
  virtual void scale(double factor) = 0;
  /// Rows of the gradient; all of the table's, where it is dense.
  virtual index_t rows() const = 0;
  /// The most that a rank may have.
  virtual index_t most() const = 0;
  /// The gradient becomes the sum over all ranks, which have so many rows each. Returns the bytes that this rank sent.
  virtual index_t gather(const tensor<std::int64_t, 1>& counts) = 0;

  const sinter::detail::state_ptr state;
};

template <class T, device D, class C>
class typed_row_leaf final : public row_leaf {
  using table_state = sinter::detail::row_state<T, D>;

 public:
  typed_row_leaf(const sinter::detail::state_ptr& s, C& ranks) : row_leaf(s), ranks_(ranks) {}

  void scale(double factor) override {
    if (factor == 1 || !state->has_kept) return;
    table_state& s = table();
    const tensor<T, 2, D>& values = s.kept_rows.defined() ? s.kept_rows.values : s.kept;
    values.in_place() = values * static_cast<compute_type<T>>(factor);
  }
  index_t rows() const override {
    if (!state->has_kept) return 0;
    return table().kept_rows.defined() ? table().kept_rows.rows.numel() : table().shape[0];
  }
  index_t most() const override {
    return is_cpu_v<D> ? table().shape[0] : index_t{std::numeric_limits<std::int32_t>::max()};
  }
  index_t gather(const tensor<std::int64_t, 1>& counts) override {
    table_state& s = table();
    const index_t longest = *std::max_element(counts.begin(), counts.end()), columns = s.shape[1];
    const index_t own = counts(ranks_.rank());
    if (longest == 0) return s.drop_kept(), 0;
    const auto rows = full<std::int64_t, D>(extents<1>{{longest}}, -1);
    const auto values = zeros<T, D>(extents<2>{{longest, columns}});
    if (own > 0) {
      const row_gradient<T, D> g =
          s.kept_rows.defined() ? s.kept_rows : row_gradient<T, D>{arange<std::int64_t, D>(own), s.kept};
      rows.slice(0, 0, own).in_place() = g.rows;
      values.slice(0, 0, own).in_place() = g.values;
    }
    auto coming = ranks_.all_gather(rows, "rows of a table");
    const auto all_values = ranks_.all_gather(values.flatten(), "gradients of rows").get();
    const auto all_rows = coming.get();
    require_rows(all_rows.template to<cpu>(), longest);
    const index_t all = all_rows.numel();
    auto sum =
        sinter::detail::kernels<ops::sum_rows, D>::run({s.shape[0]}, all_rows, all_values.reshape({all, columns}));
    s.drop_kept();
    s.kept_rows = std::move(sum);
    s.has_kept = true;
    return longest * (static_cast<index_t>(sizeof(std::int64_t)) + columns * static_cast<index_t>(sizeof(T)));
  }

 private:
  table_state& table() const { return static_cast<table_state&>(*state); }
  /// Errors: a communication_error for a number that is no row of the table.
  void require_rows(const tensor<std::int64_t, 1>& all, index_t of_each) const {
    for (index_t i = 0; i < all.numel(); ++i)
      sinter::detail::require_told(all.data()[i] >= -1 && all.data()[i] < table().shape[0], ranks_,
                                   static_cast<int>(i / of_each), "distributed", "of row ", all.data()[i],
                                   " of a table of ", table().shape[0]);
  }

  C& ranks_;
};

}  // namespace sinter::nn::detail
