// sinter/data/padded.hpp: sequences of several lengths as one tensor.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/data/dataset.hpp"

namespace sinter {

struct padding_options {
  double padding_value = 0;
  std::optional<index_t> length = {};  ///< of all sequences; unless given that of the longest
};

/// Sequences that were padded to one length: `values` (N, T, ...) and their `lengths` (N,), on the host.
template <class T, int R, device D = cpu>
struct padded {
  tensor<T, R, D> values;
  tensor<std::int64_t, 1> lengths;

  const extents<R>& shape() const { return values.shape(); }
  /// True for what belongs to a sequence, false for padding: (N, T).
  tensor<bool, 2, D> mask() const {
    const index_t n = values.shape()[0], steps = values.shape()[1];
    const auto there = tensor<bool, 2>::uninitialized({{n, steps}});
    bool* to = there.data();
    for (index_t i = 0; i < n; ++i)
      for (index_t t = 0; t < steps; ++t) *to++ = t < lengths(i);
    return there.template to<D>();
  }
  template <device To>
  padded<T, R, To> to() const {
    return {values.template to<To>(), lengths};
  }
};

/// Sequences (T_i, ...) of different lengths, padded at their ends: (N, T, ...), T the largest length or the one in the
/// options. As torch.nn.utils.rnn.pad_sequence with `batch_first`, and with the lengths. Errors: value_error without
/// sequences, for a length in the options below the largest, and for a value that T cannot hold; shape_error where
/// other extents differ.
///
///     auto [x, lengths] = pad_sequence(std::vector{a, b}, {.padding_value = -1});
template <element T, auto S>
auto pad_sequence(std::span<const tensor<T, S, cpu>> sequences, const padding_options& options = {}) {
  constexpr int rank = tensor<T, S, cpu>::rank;
  static_assert(rank >= 1, "pad_sequence: sequences have at least one axis, that of their steps");
  if (sequences.empty()) detail::refuse<value_error>({"pad_sequence: there are no sequences"});
  const T value = detail::number<T>(options.padding_value);
  const auto n = static_cast<index_t>(sequences.size());
  index_t steps = 0, i = 0;
  for (const auto& s : sequences) {
    if (!s.defined()) detail::refuse<value_error>({"pad_sequence: sequence ", i, " is undefined"});
    for (int d = 1; d < rank; ++d)
      if (s.shape()[d] != sequences[0].shape()[d])
        detail::refuse<shape_error>({"pad_sequence: sequence ", i, " has shape ", s.shape(), ", the first one ",
                                     sequences[0].shape(), "; only their lengths may differ"});
    steps = std::max(steps, s.shape()[0]);
    ++i;
  }
  if (options.length && *options.length < steps)
    detail::refuse<value_error>(
        {"pad_sequence: a sequence of ", steps, " steps does not fit the length ", *options.length});
  steps = options.length.value_or(steps);
  extents<rank + 1> shape;
  shape[0] = n;
  shape[1] = steps;
  index_t each = 1;
  for (int d = 1; d < rank; ++d) each *= shape[d + 1] = sequences[0].shape()[d];
  padded<T, rank + 1> result{tensor<T, rank + 1>::uninitialized(shape), tensor<std::int64_t, 1>::uninitialized({{n}})};
  T* to = result.values.data();
  std::int64_t* length = result.lengths.data();
  for (const auto& s : sequences) {
    const auto dense = s.contiguous();
    std::copy(dense.data(), dense.data() + dense.numel(), to);
    std::fill(to + dense.numel(), to + steps * each, value);
    to += steps * each;
    *length++ = s.shape()[0];
  }
  return result;
}
template <element T, auto S>
auto pad_sequence(const std::vector<tensor<T, S, cpu>>& sequences, const padding_options& options = {}) {
  return pad_sequence(std::span<const tensor<T, S, cpu>>(sequences), options);
}

template <element T, auto S>
auto pad_sequence(std::initializer_list<tensor<T, S, cpu>> sequences, const padding_options& options = {}) {
  return pad_sequence(std::span<const tensor<T, S, cpu>>(sequences.begin(), sequences.size()), options);
}

/// Sequences (T_i, ...) with targets (N, ...). Its batches have `inputs` of sinter::padded, to the longest of the batch
/// unless the options say a length. Errors: shape_error where targets and sequences are not equally many, and those of
/// pad_sequence.
///
///     sequence_dataset reviews(words, labels, {.padding_value = 0});
///     data_loader loader(reviews, {.batch_size = 32, .shuffle = true});
///     for (auto& [x, y] : loader) train(x.values, x.lengths, y);
template <class X, class Y>
  requires(detail::is_tensor<X> && detail::is_tensor<Y> && Y::rank >= 1 && is_cpu_v<device_of<X>> &&
           is_cpu_v<device_of<Y>>)
class sequence_dataset {
 public:
  sequence_dataset(std::vector<X> sequences, Y targets, const padding_options& options = {})
      : sequences_(std::move(sequences)), targets_(targets.contiguous()), options_(options) {
    if (!targets.defined() || targets.shape()[0] != size())
      detail::refuse<shape_error>({"sequence_dataset: ", size(), " sequences, but another number of targets"});
  }

  index_t size() const { return static_cast<index_t>(sequences_.size()); }

  auto gather(std::span<const index_t> rows) const {
    std::vector<X> some;
    for (const index_t row : rows) {
      if (row < 0 || row >= size()) detail::refuse<index_error>({"gather: row ", row, " of ", size(), " sequences"});
      some.push_back(sequences_[static_cast<std::size_t>(row)]);
    }
    auto x = pad_sequence(some, options_);
    return batch<decltype(x), Y>{std::move(x), detail::gather_rows(targets_, rows)};
  }

 private:
  std::vector<X> sequences_;
  Y targets_;
  padding_options options_;
};

}  // namespace sinter
