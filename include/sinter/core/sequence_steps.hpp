// sinter/core/sequence_steps.hpp: sequences of different lengths as the rows of one matrix, step by step.
#pragma once

#include <utility>
#include <vector>

#include "sinter/core/error.hpp"
#include "sinter/core/types.hpp"

namespace sinter {

/// The steps of a batch of sequences whose elements are the rows of one matrix: first those of step 0 of all sequences,
/// then those of step 1, and so on. Sequence n has row n of each step that it has. The longest come first, so that
/// those that have a step are the first ones. As torch.nn.utils.rnn.PackedSequence.
///
///     sequence_steps::even(3, 2)  // 3 steps of 2 sequences: 6 rows
///     sequence_steps({2, 2, 1})   // the second sequence ends after 2 steps: 5 rows
class sequence_steps {
 public:
  sequence_steps() = default;
  /// `count` steps of as many sequences each. Errors: value_error where one is negative.
  static sequence_steps even(index_t count, index_t sequences) {
    if (count < 0 || sequences < 0)
      detail::refuse<value_error>({"sequence_steps: ", count, " steps of ", sequences, " sequences"});
    sequence_steps steps;
    steps.count_ = count;
    steps.size_ = sequences;
    steps.rows_ = count * sequences;
    return steps;
  }
  /// Step t has sizes[t] rows. Errors: value_error where a size is negative or larger than the one before.
  explicit sequence_steps(std::vector<index_t> sizes)
      : count_(static_cast<index_t>(sizes.size())), size_(sizes.empty() ? 0 : sizes[0]) {
    for (std::size_t t = 0; t < sizes.size(); ++t) {
      if (sizes[t] < 0 || (t > 0 && sizes[t] > sizes[t - 1]))
        detail::refuse<value_error>({"sequence_steps: step ", static_cast<index_t>(t), " has ", sizes[t],
                                     " rows; a step may have no more rows than the one before"});
      rows_ += sizes[t];
    }
    if (!sizes.empty() && sizes.back() != size_) sizes_ = std::move(sizes);
  }

  index_t count() const { return count_; }
  /// Whether all steps have as many rows.
  bool is_even() const { return sizes_.empty(); }
  /// Sequences that have a first step.
  index_t sequences() const { return count_ > 0 ? size_ : 0; }
  index_t rows() const { return rows_; }
  index_t size_of(index_t step) const { return sizes_.empty() ? size_ : sizes_[static_cast<std::size_t>(step)]; }

  /// The same steps, gone through from the last element of each sequence to its first.
  sequence_steps reversed() const {
    sequence_steps other = *this;
    other.reversed_ = !reversed_;
    return other;
  }

  /// f(first row, rows) for each step that has rows, in order.
  template <class F>
  void each(const F& f) const {
    go(reversed_, f);
  }
  /// The same in the opposite order.
  template <class F>
  void each_back(const F& f) const {
    go(!reversed_, f);
  }

 private:
  template <class F>
  void go(bool from_end, const F& f) const {
    index_t row = from_end ? rows_ : 0;
    for (index_t i = 0; i < count_; ++i) {
      const index_t n = size_of(from_end ? count_ - 1 - i : i);
      if (from_end) row -= n;
      if (n > 0) f(row, n);
      if (!from_end) row += n;
    }
  }

  index_t count_ = 0, size_ = 0, rows_ = 0;
  bool reversed_ = false;
  std::vector<index_t> sizes_;  ///< empty where all are size_
};

}  // namespace sinter
