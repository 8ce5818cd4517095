// sinter/nn/embedding.hpp: the layers that hold a table of rows and look them up by ids.
#pragma once

#include <cmath>

#include "sinter/nn/init.hpp"
#include "sinter/nn/module.hpp"
#include "sinter/ops/embedding_bag.hpp"
#include "sinter/ops/in_place.hpp"

namespace sinter::nn {

struct weights_without_a_generator;
struct pass_a_generator_as_third_argument;

/// As in torch.nn.Embedding.
struct embedding_settings {
  std::optional<index_t> padding_idx = std::nullopt;  ///< a row that begins as zeros and gets no gradient
  std::optional<double> max_norm = std::nullopt;      ///< rows that are looked up are scaled down to it, in place
  double norm_type = 2;                               ///< p of that norm
  bool scale_grad_by_freq = false;  ///< the gradient of a row is divided by how often its id is among the ids
  bool sparse = false;              ///< the gradient is held by rows, see row_sparse()
};
template <>
inline constexpr bool is_setting<embedding_settings> = true;

/// As in torch.nn.EmbeddingBag.
struct embedding_bag_settings {
  bag_mode mode = bag_mode::mean;                     ///< what becomes of the rows of a bag
  std::optional<index_t> padding_idx = std::nullopt;  ///< ids that are in no bag; their row begins as zeros
  std::optional<double> max_norm = std::nullopt;      ///< rows that are looked up are scaled down to it, in place
  double norm_type = 2;                               ///< p of that norm
  bool scale_grad_by_freq = false;   ///< the gradient of a row is divided by how often its id is in bags; not for max
  bool include_last_offset = false;  ///< the last offset is where the last bag ends
  bool sparse = false;               ///< the gradient is held by rows, see row_sparse()
};
template <>
inline constexpr bool is_setting<embedding_bag_settings> = true;

namespace detail {

SINTER_SHARED_COLD void check_table(const char* name, const extents<2>& shape, const std::optional<double>& max_norm,
                                    double norm_type);
#if SINTER_DEFINES
SINTER_SHARED_COLD void check_table(const char* name, const extents<2>& shape, const std::optional<double>& max_norm,
                                    double norm_type) {
  if (shape[0] < 0 || shape[1] < 0)
    sinter::detail::refuse<shape_error>(
        {name, ": ", shape[0], " rows of ", shape[1], " elements; neither may be negative"});
  if (!(norm_type > 0))
    sinter::detail::refuse<value_error>({name, ": norm_type is ", norm_type, "; it must be above 0"});
  if (max_norm && !(*max_norm >= 0))
    sinter::detail::refuse<value_error>({name, ": max_norm is ", *max_norm, "; it must not be negative"});
}
#endif  // SINTER_DEFINES

/// The table of an embedding or embedding_bag, and how its rows are prepared.
template <class Self, class Settings, floating_element T, device D, class Kind>
struct table_of_rows : module<Self> {
  using device_type = D;
  using kind = Kind;

  table_of_rows() = default;
  table_of_rows(const char* name, index_t rows, index_t columns, generator& gen, const Settings& how) : settings(how) {
    check_table(name, {{rows, columns}}, how.max_norm, how.norm_type);
    const tensor<T, 2, D> table = randn<T, D>(gen, extents<2>{{rows, columns}});
    const index_t row = sinter::detail::checked_padding(name, how.padding_idx, rows);
    if (row != sinter::detail::no_padding) table.select(0, row).in_place() = zeros<T, D>(extents<1>{{columns}});
    weight = parameter_of(table);
  }
  table_of_rows(const char* name, const tensor<T, 2, D>& table, bool freeze, const Settings& how)
      : settings(how), frozen(freeze) {
    sinter::detail::check_defined(name, table);
    weight = parameter_of(table);
    check_table(name, table.shape(), how.max_norm, how.norm_type);
    sinter::detail::checked_padding(name, how.padding_idx, table.shape()[0]);
  }

  template <class F, class... M>
  static void visit(F&& f, M&... m) {
    f("weight", m.weight...);
    f("settings", m.settings...);
    f("frozen", m.frozen...);
  }

  parameter<T, 2, D, Kind> weight;
  Settings settings;
  bool frozen = false;  ///< whether lookups give weight no gradient

 private:
  parameter<T, 2, D, Kind> parameter_of(const tensor<T, 2, D>& table) const {
    if constexpr (std::is_same_v<Kind, tracked>)
      if (settings.sparse) return row_sparse(table);
    return table;
  }

 protected:
  /// What is looked up, its rows of these ids within max_norm.
  template <class I>
  parameter<T, 2, D, Kind> table_for(const char* name, const I& ids) const {
    sinter::detail::check_defined(name, weight);
    const tensor<T, 2, D> rows = stored_value(weight);
    if (settings.max_norm) {
      const auto places = sinter::detail::checked_indices(name, ids, rows.shape()[0], "id").contiguous();
      using limit = sinter::detail::kernels<ops::renorm_op, D>;
      if (limit::run({*settings.max_norm, settings.norm_type}, rows, places))
        sinter::detail::note_write(*sinter::detail::access::storage_of(rows).get());
    }
    if constexpr (std::is_same_v<Kind, tracked>)
      if (frozen) return sinter::detail::unrecorded<1>(rows);
    return weight;
  }
};

/// What is wrong with a call of an embedding_bag with table W: with ids I, or also offsets, or weights, or both.
template <class W, class I, class... More>
struct bag_input {
  using mistake = sinter::detail::bag_call_mistake<I, More..., W>;
};
template <class W, class I, class S>
  requires(!sinter::detail::is_bag_offsets<S>)
struct bag_input<W, I, S> {
  using mistake = sinter::detail::bag_call_mistake<I, W, S>;
};
template <class W, class I, class O, class S>
struct bag_input<W, I, O, S> {
  using mistake = sinter::detail::bag_call_mistake<I, O, W, S>;
};
template <class W, class I, class... More>
using bag_input_mistake = typename bag_input<W, bare<I>, bare<More>...>::mistake;

}  // namespace detail

/// Rows of a trained table by their numbers: integers (…) => (…,E), with weight (V,E) as in torch.nn.Embedding: N(0,1),
/// the padding row 0. With max_norm a call first scales the rows that it looks up, where their norm is above it, by
/// max_norm / (norm + 1e-7), in place: that is a write to weight, which backward of what has read weight before
/// notices. Two threads at a time may then not call it, nor may checkpoint(). See sinter::embedding.
///
///     nn::embedding words(10000, 256, gen);  // float on the cpu
///     nn::embedding padded(10000, 256, gen, {.padding_idx = 0, .max_norm = 1.0});
///     tensor y = infer(words)(ids);                    // (batch, time) => (batch, time, 256)
///     nn::linear head(256, 10000, gen, nn::no_bias);
///     head.weight = words.weight;                      // tied: one variable in two places
template <floating_element T = float, device D = cpu, class Kind = tracked>
struct embedding : detail::table_of_rows<embedding<T, D, Kind>, embedding_settings, T, D, Kind> {
  template <class To, class K>
  using rebind = embedding<T, To, K>;
  using base = detail::table_of_rows<embedding, embedding_settings, T, D, Kind>;

  embedding() = default;
  embedding(index_t num_embeddings, index_t embedding_dim, generator& gen, const embedding_settings& how = {})
      : base("embedding", num_embeddings, embedding_dim, gen, how) {}
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_as_third_argument>
  embedding(index_t, index_t) = delete;

  /// A layer whose weight is this table, not a copy; with freeze it gets no gradient from lookups, as in
  /// torch.nn.Embedding.from_pretrained.
  ///
  ///     auto words = nn::embedding<>::from_pretrained(vectors, false);
  static embedding from_pretrained(const tensor<T, 2, D>& table, bool freeze = true,
                                   const embedding_settings& how = {}) {
    return embedding(table, freeze, how);
  }

  template <class X>
  static constexpr auto mistake() {
    return sinter::detail::embedding_mistake<X, parameter<T, 2, D, Kind>>{};
  }
  template <class X>
  auto forward(const X& ids) const {
    return sinter::embedding(
        ids, this->table_for("embedding", ids),
        {.padding_idx = this->settings.padding_idx, .scale_grad_by_freq = this->settings.scale_grad_by_freq});
  }

 private:
  embedding(const tensor<T, 2, D>& table, bool freeze, const embedding_settings& how)
      : base("embedding", table, freeze, how) {}
};
embedding(index_t, index_t, generator&) -> embedding<>;
embedding(index_t, index_t, generator&, const embedding_settings&) -> embedding<>;

/// Rows of a trained table, joined bag by bag: ids (B,N), the bags, or ids (N) and offsets (B) => (B,E), with weight
/// (V,E) as in torch.nn.EmbeddingBag. Behind them, for bag_mode::sum, a weight for each id. max_norm as in embedding;
/// see sinter::embedding_bag.
///
///     nn::embedding_bag words(10000, 256, gen, {.mode = bag_mode::sum});
///     variable means = words(ids);
///     variable sums = words(ids, offsets, weights);
template <floating_element T = float, device D = cpu, class Kind = tracked>
struct embedding_bag : detail::table_of_rows<embedding_bag<T, D, Kind>, embedding_bag_settings, T, D, Kind> {
  template <class To, class K>
  using rebind = embedding_bag<T, To, K>;
  using base = detail::table_of_rows<embedding_bag, embedding_bag_settings, T, D, Kind>;
  using table = parameter<T, 2, D, Kind>;

  embedding_bag() = default;
  embedding_bag(index_t num_embeddings, index_t embedding_dim, generator& gen, const embedding_bag_settings& how = {})
      : base("embedding_bag", num_embeddings, embedding_dim, gen, how) {}
  template <class Problem = weights_without_a_generator, class Fix = pass_a_generator_as_third_argument>
  embedding_bag(index_t, index_t) = delete;

  /// As embedding::from_pretrained.
  static embedding_bag from_pretrained(const tensor<T, 2, D>& rows, bool freeze = true,
                                       const embedding_bag_settings& how = {}) {
    return embedding_bag(rows, freeze, how);
  }

  template <class I, class... More>
    requires(sizeof...(More) < 3)
  static constexpr auto mistake() {
    return detail::bag_input_mistake<table, I, More...>{};
  }
  /// Of ids alone, of ids and offsets, ids and weights, or ids, offsets and weights.
  template <class I>
  auto forward(const I& ids) const {
    return sinter::embedding_bag(ids, rows_for(ids), options());
  }
  template <class I, class A>
  auto forward(const I& ids, const A& offsets_or_weights) const {
    if constexpr (sinter::detail::is_bag_offsets<A>)
      return sinter::embedding_bag(ids, offsets_or_weights, rows_for(ids), options());
    else return sinter::embedding_bag(ids, rows_for(ids), offsets_or_weights, options());
  }
  template <class I, class O, class S>
  auto forward(const I& ids, const O& offsets, const S& weights) const {
    return sinter::embedding_bag(ids, offsets, rows_for(ids), weights, options());
  }

 private:
  embedding_bag(const tensor<T, 2, D>& rows, bool freeze, const embedding_bag_settings& how)
      : base("embedding_bag", rows, freeze, how) {}
  template <class I>
  table rows_for(const I& ids) const {
    return this->table_for("embedding_bag", ids);
  }
  embedding_bag_options options() const {
    const embedding_bag_settings& s = this->settings;
    return {s.mode, s.padding_idx, s.scale_grad_by_freq, s.include_last_offset};
  }
};
embedding_bag(index_t, index_t, generator&) -> embedding_bag<>;
embedding_bag(index_t, index_t, generator&, const embedding_bag_settings&) -> embedding_bag<>;

}  // namespace sinter::nn
