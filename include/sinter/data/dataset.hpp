// sinter/data/dataset.hpp: what a data loader reads: a number of samples, one by one or a batch at a time.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <utility>

#include "sinter/core/tensor.hpp"

namespace sinter {

/// One sample of a dataset: tensors of equal shape throughout, or numbers.
template <class X, class Y>
struct sample {
  X input;
  Y target;
};

/// Several samples, stacked along a new first axis. `auto& [x, y] = batch` takes it apart.
template <class X, class Y>
struct batch {
  X inputs;
  Y targets;

  index_t size() const { return inputs.shape()[0]; }
  /// The batch on device D.
  template <device D>
  auto to() const {
    auto x = inputs.template to<D>();
    auto y = targets.template to<D>();
    return batch<decltype(x), decltype(y)>{std::move(x), std::move(y)};
  }
};

/// Gives the batch of the samples at some indices at once.
template <class S>
concept batched_dataset = requires(const S& s, std::span<const index_t> rows) {
  { s.size() } -> std::convertible_to<index_t>;
  s.gather(rows);
};

/// Gives sample number i, as sinter::sample.
template <class S>
concept itemised_dataset = requires(const S& s, index_t i) {
  { s.size() } -> std::convertible_to<index_t>;
  s.get(i).input;
  s.get(i).target;
};

/// size() and gather(rows), or size() and get(i). The loader's thread calls gather and get, one call at a time.
template <class S>
concept dataset = batched_dataset<S> || itemised_dataset<S>;

namespace detail {

/// Rows `rows` of a dense host tensor: (N, ...) => (n, ...).
template <class T, auto R, device D>
tensor<T, R, D> gather_rows(const tensor<T, R, D>& from, std::span<const index_t> rows) {
  auto shape = from.shape();
  const index_t count = shape[0];
  shape[0] = static_cast<index_t>(rows.size());
  const auto to = tensor<T, R, D>::uninitialized(shape);
  const index_t each = count > 0 ? from.numel() / count : 0;
  T* out = to.data();
  for (index_t row : rows) {
    if (row < 0 || row >= count) refuse<index_error>({"gather: row ", row, " of a tensor of shape ", from.shape()});
    if (each > 0) std::memcpy(out, from.data() + row * each, static_cast<std::size_t>(each) * sizeof(T));
    out += each;
  }
  return to;
}

/// Makes room for n values like `first`, one after the other.
template <class T, auto R, device D>
auto stack_for(index_t n, const tensor<T, R, D>& first) {
  constexpr int rank = tensor<T, R, D>::rank;
  extents<rank + 1> shape;
  shape[0] = n;
  for (int d = 0; d < rank; ++d) shape[d + 1] = first.shape()[d];
  return tensor<T, rank + 1, D>::uninitialized(shape);
}
template <element T>
auto stack_for(index_t n, T) {
  return tensor<T, 1>::uninitialized(extents<1>{{n}});
}
template <class T, auto S, auto R, device D>
void stack_put(const tensor<T, S, D>& to, index_t i, const tensor<T, R, D>& value, index_t number) {
  for (int d = 0; d < value.rank; ++d)
    if (value.shape()[d] != to.shape()[d + 1])
      refuse<shape_error>({"data_loader: sample ", number, " has shape ", value.shape(),
                           ", unlike the others of its batch, ", to[0].shape()});
  const auto dense = value.contiguous();
  std::memcpy(to.data() + i * value.numel(), dense.data(), static_cast<std::size_t>(value.numel()) * sizeof(T));
}
template <element T>
void stack_put(const tensor<T, 1>& to, index_t i, T value, index_t) {
  to.data()[i] = value;
}

/// The batch of the samples at `rows`, of which there is at least one.
template <dataset S>
auto gather(const S& set, std::span<const index_t> rows) {
  if constexpr (batched_dataset<S>) {
    return set.gather(rows);
  } else {
    const auto n = static_cast<index_t>(rows.size());
    const auto first = set.get(rows[0]);
    auto x = stack_for(n, first.input);
    auto y = stack_for(n, first.target);
    stack_put(x, 0, first.input, rows[0]);
    stack_put(y, 0, first.target, rows[0]);
    for (index_t i = 1; i < n; ++i) {
      const index_t row = rows[static_cast<std::size_t>(i)];
      const auto s = set.get(row);
      stack_put(x, i, s.input, row);
      stack_put(y, i, s.target, row);
    }
    return batch<decltype(x), decltype(y)>{std::move(x), std::move(y)};
  }
}

}  // namespace detail
}  // namespace sinter
