// sinter/sequences/packed_sequence.hpp: sequences of different lengths without padding.
#pragma once

#include <algorithm>
#include <numeric>
#include <vector>

#include "sinter/core/sequence_steps.hpp"
#include "sinter/ops/concat.hpp"
#include "sinter/ops/gather.hpp"

namespace sinter {

/// The elements of sequences of different lengths as rows, step by step, the longest sequence first: what recurrent
/// layers run over without work for padding. As torch.nn.utils.rnn.PackedSequence.
template <class Rows>
struct packed_sequence {
  Rows data;             ///< (elements of all sequences, features)
  sequence_steps steps;  ///< how many rows each step has
  /// Sequence n of the packed ones is sequence order[n] of the batch. Empty where they stand in order.
  std::vector<index_t> order;
  index_t sequences = 0;  ///< of the batch, those without elements too

  /// The same steps with other rows.
  template <class Other>
  packed_sequence<Other> with(Other rows) const {
    return {std::move(rows), steps, order, sequences};
  }
  /// The sequences of `order`, inverted: sequence n of the batch is packed as sequence places()[n].
  std::vector<index_t> places() const {
    std::vector<index_t> to(order.size());
    for (std::size_t i = 0; i < order.size(); ++i) to[static_cast<std::size_t>(order[i])] = static_cast<index_t>(i);
    return to;
  }
};

template <class X>
inline constexpr bool is_packed_sequence = false;
template <class Rows>
inline constexpr bool is_packed_sequence<packed_sequence<Rows>> = true;

struct pack_options {
  bool batch_first = false;    ///< (N,T,...) in place of (T,N,...)
  bool enforce_sorted = true;  ///< false: lengths stand in any order
};

/// Padded sequences, and how long each is.
template <class Values>
struct padded_sequence {
  Values values;
  std::vector<index_t> lengths;
};
struct pad_options {
  bool batch_first = false;
  double padding_value = 0;
  index_t total_length = 0;  ///< pads to so many steps; 0: to the longest sequence
};

namespace detail {

/// An index into rows on device D.
template <device D>
tensor<std::int64_t, 1, D> index_on(const std::vector<index_t>& values) {
  return from_data<std::int64_t, D>(values, {static_cast<index_t>(values.size())});
}

/// Lengths on the host, of any integers.
template <class Lengths>
std::vector<index_t> host_lengths(const Lengths& lengths) {
  std::vector<index_t> all;
  if constexpr (expression<Lengths>) {
    const auto host = eval(cast<std::int64_t>(lengths)).template to<cpu>().contiguous();
    all.assign(access::data(host), access::data(host) + host.numel());
  } else {
    for (const auto n : lengths) all.push_back(static_cast<index_t>(n));
  }
  return all;
}
/// Errors: value_error for a length outside [0, steps].
SINTER_SHARED void check_lengths(const char* op, const std::vector<index_t>& all, index_t steps,
                                 const char* what = "length", const char* of = "the steps of the padded sequences");
#if SINTER_DEFINES
SINTER_SHARED void check_lengths(const char* op, const std::vector<index_t>& all, index_t steps, const char* what,
                                 const char* of) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i] < 0 || all[i] > steps)
      refuse<value_error>({op, ": ", what, " ", all[i], " of sequence ", static_cast<index_t>(i), " lies outside [0, ",
                           steps, "], ", of});
}
#endif  // SINTER_DEFINES

/// Errors: as check_lengths; shape_error unless there is one for each sequence. `what` is a length, `of` the limit.
template <class Lengths>
std::vector<index_t> checked_lengths(const char* op, const Lengths& lengths, index_t sequences, index_t steps,
                                     const char* what = "length",
                                     const char* of = "the steps of the padded sequences") {
  std::vector<index_t> all = host_lengths(lengths);
  if (static_cast<index_t>(all.size()) != sequences)
    refuse<shape_error>({op, ": ", static_cast<index_t>(all.size()), " ", what, "s for ", sequences, " sequences"});
  check_lengths(op, all, steps, what, of);
  return all;
}

}  // namespace detail

/// The elements of padded sequences x (T,N,features), or (N,T,features) with batch_first, of which sequence n has the
/// first lengths[n]. Lengths are on the host, of any integer type, and may be 0. Runs at once. Derivative: g at the
/// elements, 0 at the padding. As torch.nn.utils.rnn.pack_padded_sequence. Errors:
/// value_error for a length outside [0, T], or lengths that grow where enforce_sorted is set; shape_error.
///
///     const auto packed = pack_padded_sequence(x, {5, 3, 3}, {.batch_first = true});
///     const auto [output, state] = lstm(packed, nn::zero_state);
template <expression X, class Lengths = std::vector<index_t>>
  requires(rank_of<X> == 3)
auto pack_padded_sequence(const X& x, const Lengths& lengths, const pack_options& options = {}) {
  static constexpr const char* op = "pack_padded_sequence";
  detail::check_defined(op, x);
  const index_t steps = x.shape()[options.batch_first ? 1 : 0], sequences = x.shape()[options.batch_first ? 0 : 1];
  const std::vector<index_t> all = detail::checked_lengths(op, lengths, sequences, steps);
  std::vector<index_t> order(all.size());
  std::iota(order.begin(), order.end(), index_t{0});
  if (!std::is_sorted(all.rbegin(), all.rend())) {
    if (options.enforce_sorted)
      detail::refuse<value_error>({op,
                                   ": the lengths grow; sort the sequences, the longest first, or pass "
                                   "{.enforce_sorted = false}"});
    // Not stable_sort, of which clang 19 warns with the library of g++ 12.
    std::sort(order.begin(), order.end(), [&](index_t a, index_t b) {
      const index_t of_a = all[static_cast<std::size_t>(a)], of_b = all[static_cast<std::size_t>(b)];
      return of_a != of_b ? of_a > of_b : a < b;
    });
  }
  const bool sorted = std::is_sorted(order.begin(), order.end());
  std::vector<index_t> sizes, rows;
  for (index_t t = 0; !order.empty() && t < all[static_cast<std::size_t>(order[0])]; ++t) {
    index_t n = 0;
    for (const index_t s : order) {
      if (all[static_cast<std::size_t>(s)] <= t) break;
      rows.push_back(options.batch_first ? s * steps + t : t * sequences + s);
      ++n;
    }
    sizes.push_back(n);
  }
  const auto values = eval(x);
  auto data = index_select(values.reshape({steps * sequences, x.shape()[2]}), 0, detail::index_on<device_of<X>>(rows));
  return packed_sequence<decltype(data)>{std::move(data), sequence_steps(std::move(sizes)),
                                         sorted ? std::vector<index_t>{} : std::move(order), sequences};
}

/// The sequences padded to one length: (T,N,features), or (N,T,features) with batch_first, and their lengths, in the
/// order of the batch that was packed. Runs at once. Derivative: g of the elements. Errors: value_error where
/// total_length is shorter than a sequence.
///
///     const auto [values, lengths] = pad_packed_sequence(output, {.batch_first = true});
template <class Rows>
auto pad_packed_sequence(const packed_sequence<Rows>& packed, const pad_options& options = {}) {
  using T = element_of<Rows>;
  using D = device_of<Rows>;
  const index_t longest = packed.steps.count(), sequences = packed.sequences;
  const index_t steps = options.total_length > 0 ? options.total_length : longest;
  if (steps < longest)
    detail::refuse<value_error>(
        {"pad_packed_sequence: total_length ", steps, " is shorter than the longest sequence, ", longest});
  // Row 0 is the padding.
  const auto padding = full<T, D>({1, packed.data.shape()[1]}, static_cast<T>(options.padding_value));
  std::vector<index_t> lengths(static_cast<std::size_t>(sequences)), from(static_cast<std::size_t>(steps * sequences));
  index_t row = 1;
  for (index_t t = 0; t < longest; ++t)
    for (index_t n = 0; n < packed.steps.size_of(t); ++n, ++row) {
      const index_t s = packed.order.empty() ? n : packed.order[static_cast<std::size_t>(n)];
      lengths[static_cast<std::size_t>(s)] = t + 1;
      from[static_cast<std::size_t>(options.batch_first ? s * steps + t : t * sequences + s)] = row;
    }
  const auto rows = index_select(concat(0, padding, packed.data), 0, detail::index_on<D>(from));
  auto values = rows.reshape(
      {options.batch_first ? sequences : steps, options.batch_first ? steps : sequences, packed.data.shape()[1]});
  return padded_sequence<decltype(values)>{std::move(values), std::move(lengths)};
}

}  // namespace sinter
