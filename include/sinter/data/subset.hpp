// sinter/data/subset.hpp: some samples of a dataset, random parts of one, and several behind each other.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <tuple>
#include <vector>

#include "sinter/data/dataset.hpp"
#include "sinter/random/create.hpp"

namespace sinter {

/// Samples rows[0], rows[1], ... of a dataset, as torch.utils.data.Subset; it holds the dataset, whose tensors are
/// shared. Errors: index_error for a row that it does not have.
///
///     subset first(train, {0, 1, 2});
template <dataset Set>
class subset {
 public:
  subset(Set set, std::vector<index_t> rows) : set_(std::move(set)), rows_(std::move(rows)) {
    const index_t n = set_.size();
    for (const index_t row : rows_)
      if (row < 0 || row >= n) detail::refuse<index_error>({"subset: row ", row, " of a dataset of ", n, " samples"});
  }

  index_t size() const { return static_cast<index_t>(rows_.size()); }
  const Set& dataset() const { return set_; }
  const std::vector<index_t>& rows() const { return rows_; }

  auto gather(std::span<const index_t> rows) const {
    std::vector<index_t> of_set;
    of_set.reserve(rows.size());
    for (const index_t row : rows) {
      if (row < 0 || row >= size()) detail::refuse<index_error>({"gather: row ", row, " of ", size()});
      of_set.push_back(rows_[static_cast<std::size_t>(row)]);
    }
    return detail::gather(set_, std::span<const index_t>(of_set));
  }

 private:
  Set set_;
  std::vector<index_t> rows_;
};

namespace detail {

/// Numbers of samples from fractions of n: rounded down, then one more for the first ones until there are n, as
/// torch.utils.data.random_split. Errors: value_error.
SINTER_SHARED_COLD std::vector<index_t> counts_of_fractions(index_t n, std::span<const double> fractions);
/// A random order of n samples, cut into parts of these sizes. Errors: value_error where their sum is not n.
SINTER_SHARED_COLD std::vector<std::vector<index_t>> random_parts(generator& gen, index_t n,
                                                                  std::span<const index_t> counts);

#if SINTER_DEFINES

SINTER_SHARED_COLD std::vector<index_t> counts_of_fractions(index_t n, std::span<const double> fractions) {
  double sum = 0;
  for (const double f : fractions) {
    if (!(f >= 0 && f <= 1)) refuse<value_error>({"random_split: the fraction ", f, " is outside [0, 1]"});
    sum += f;
  }
  if (std::abs(sum - 1) > 1e-9)
    refuse<value_error>({"random_split: the fractions add up to ", sum, "; they must add up to 1"});
  std::vector<index_t> counts;
  index_t left = n;
  for (const double f : fractions) {
    counts.push_back(std::min(left, static_cast<index_t>(std::floor(static_cast<double>(n) * f))));
    left -= counts.back();
  }
  for (std::size_t i = 0; left > 0; --left, i = (i + 1) % counts.size()) ++counts[i];
  return counts;
}

SINTER_SHARED_COLD std::vector<std::vector<index_t>> random_parts(generator& gen, index_t n,
                                                                  std::span<const index_t> counts) {
  index_t sum = 0;
  for (const index_t count : counts) {
    if (count < 0 || count > n - sum)
      refuse<value_error>({"random_split: the sizes must be 0 or more and add up to the ", n,
                           " samples of the dataset; ", count, " after ", sum, " do not"});
    sum += count;
  }
  if (sum != n) refuse<value_error>({"random_split: the sizes add up to ", sum, ", but there are ", n, " samples"});
  const tensor<index_t, 1> order = randperm<index_t>(gen, n);
  const index_t* from = order.data();
  std::vector<std::vector<index_t>> parts;
  for (const index_t count : counts) {
    parts.emplace_back(from, from + count);
    from += count;
  }
  return parts;
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Cuts a dataset at random into parts without common samples, as torch.utils.data.random_split: of these sizes, or,
/// where they are floating-point numbers, of these fractions, rounded down; what is left goes to the first parts. Draws
/// `randperm(gen, set.size())`. Errors: value_error for sizes that do not add up to that of the dataset, or fractions
/// not to 1.
///
///     auto parts = random_split(gen, set, {0.8, 0.1, 0.1});
///     data_loader train(parts[0], {.batch_size = 32, .shuffle = true});
template <dataset Set, class N>
  requires(std::is_arithmetic_v<N>)
std::vector<subset<Set>> random_split(generator& gen, const Set& set, const std::vector<N>& sizes) {
  std::vector<index_t> counts;
  if constexpr (std::is_floating_point_v<N>) {
    const std::vector<double> fractions(sizes.begin(), sizes.end());
    counts = detail::counts_of_fractions(set.size(), fractions);
  } else {
    for (const N size : sizes) counts.push_back(detail::number<index_t>(size));
  }
  std::vector<subset<Set>> parts;
  for (std::vector<index_t>& rows : detail::random_parts(gen, set.size(), counts))
    parts.emplace_back(set, std::move(rows));
  return parts;
}
/// The same of sizes in braces, whose number is known: `auto [train, test] = random_split(gen, set, {0.8, 0.2});`
template <dataset Set, class N, std::size_t K>
  requires(std::is_arithmetic_v<N>)
std::array<subset<Set>, K> random_split(generator& gen, const Set& set, const N (&sizes)[K]) {
  std::vector<subset<Set>> parts = random_split(gen, set, std::vector<N>(sizes, sizes + K));
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<subset<Set>, K>{std::move(parts[I])...};
  }(std::make_index_sequence<K>());
}
template <dataset Set, std::size_t K>
std::array<subset<Set>, K> random_split(generator& gen, const Set& set, const index_t (&sizes)[K]) {
  return random_split<Set, index_t, K>(gen, set, sizes);
}

// Names in messages.
struct random_parts_without_a_generator_in_front;
struct write_a_generator_in_front_of_the_dataset;
template <dataset Set, class N, class Problem = random_parts_without_a_generator_in_front,
          class Fix = write_a_generator_in_front_of_the_dataset>
void random_split(const Set&, std::initializer_list<N>) = delete;
struct test_size_that_is_not_in_braces;
struct write_dot_test_size_in_braces;

struct train_test_split_options {
  double test_size = 0.25;  ///< the fraction of the samples, rounded up, that are for the test
  bool shuffle = true;      ///< false: the last samples are for the test, as for what is ordered by time
};

template <dataset Set>
struct train_test {
  subset<Set> train, test;
};

/// Parts of a dataset for training and for the test, as scikit-learn's train_test_split. Draws
/// `randperm(gen, set.size())`, unless it is not to shuffle. Errors: value_error for a fraction that leaves one of them
/// without samples.
///
///     auto [train, test] = train_test_split(gen, tensor_dataset(images, labels), {.test_size = 0.2});
template <dataset Set>
train_test<Set> train_test_split(generator& gen, const Set& set, const train_test_split_options& options = {}) {
  const index_t n = set.size();
  const double size = options.test_size;
  if (!(size > 0 && size < 1))
    detail::refuse<value_error>({"train_test_split: test_size is ", size,
                                 "; it is the fraction of the samples that are for the test, between 0 and 1"});
  const auto test = static_cast<index_t>(std::ceil(size * static_cast<double>(n)));
  if (test < 1 || test >= n)
    detail::refuse<value_error>(
        {"train_test_split: test_size ", size, " of ", n, " samples leaves none for the test or for training"});
  std::vector<index_t> rows(static_cast<std::size_t>(n));
  if (options.shuffle) rows = detail::random_parts(gen, n, std::span<const index_t>(&n, 1))[0];
  else std::iota(rows.begin(), rows.end(), index_t{0});
  const auto middle = rows.begin() + (n - test);
  return {{set, {rows.begin(), middle}}, {set, {middle, rows.end()}}};
}

template <dataset Set, class N, class Problem = test_size_that_is_not_in_braces,
          class Fix = write_dot_test_size_in_braces>
  requires(std::is_arithmetic_v<N>)
void train_test_split(generator&, const Set&, N) = delete;

namespace detail {

/// Puts row i of `part` to row places[i] of `to`.
template <class T, auto R, device D>
void put_rows(const tensor<T, R, D>& to, const tensor<T, R, D>& part, const std::vector<index_t>& places) {
  for (int d = 1; d < to.rank; ++d)
    if (part.shape()[d] != to.shape()[d])
      refuse<shape_error>({"concat_dataset: samples of shape ", part[0].shape(), " and ", to[0].shape(),
                           " in one batch; all must have one shape"});
  const auto dense = part.contiguous();
  const index_t each = places.empty() ? 0 : part.numel() / static_cast<index_t>(places.size());
  const T* from = dense.data();
  for (const index_t place : places) {
    if (each > 0) std::memcpy(to.data() + place * each, from, static_cast<std::size_t>(each) * sizeof(T));
    from += each;
  }
}
/// Room for n rows like those of `part`.
template <class T, auto R, device D>
tensor<T, R, D> rows_like(const tensor<T, R, D>& part, index_t n) {
  auto shape = part.shape();
  shape[0] = n;
  return tensor<T, R, D>::uninitialized(shape);
}

template <class B>
inline constexpr bool is_batch_of_tensors = is_tensor<decltype(B::inputs)> && is_tensor<decltype(B::targets)>;

}  // namespace detail

/// The samples of several datasets behind each other, as torch.utils.data.ConcatDataset. Their batches are tensors of
/// the same types, their samples of one shape. Errors: index_error for a sample that there is not, shape_error for
/// batches of samples of several shapes.
///
///     concat_dataset all(first, second);
template <dataset First, dataset... More>
class concat_dataset {
  template <class Set>
  using batch_of = decltype(detail::gather(std::declval<const Set&>(), std::span<const index_t>()));
  static_assert((std::is_same_v<batch_of<First>, batch_of<More>> && ...),
                "concat_dataset: the batches of all datasets must be of the same types");
  static_assert(detail::is_batch_of_tensors<batch_of<First>>,
                "concat_dataset: batches that are padded, as those of a sequence_dataset, cannot be put together; make "
                "one sequence_dataset of all sequences");

 public:
  explicit concat_dataset(First first, More... more) : sets_(std::move(first), std::move(more)...) {}

  index_t size() const {
    return std::apply([](const auto&... sets) { return (index_t{0} + ... + sets.size()); }, sets_);
  }

  batch_of<First> gather(std::span<const index_t> rows) const {
    batch_of<First> all;
    for (const index_t row : rows)
      if (row < 0 || row >= size()) detail::refuse<index_error>({"gather: row ", row, " of ", size()});
    index_t begin = 0;
    const auto add = [&](const auto& set) {
      const index_t end = begin + set.size();
      std::vector<index_t> of_set, places;
      for (std::size_t i = 0; i < rows.size(); ++i)
        if (rows[i] >= begin && rows[i] < end) {
          of_set.push_back(rows[i] - begin);
          places.push_back(static_cast<index_t>(i));
        }
      begin = end;
      if (of_set.empty()) return;
      const auto part = detail::gather(set, std::span<const index_t>(of_set));
      if (!all.inputs.defined()) {
        all.inputs = detail::rows_like(part.inputs, static_cast<index_t>(rows.size()));
        all.targets = detail::rows_like(part.targets, static_cast<index_t>(rows.size()));
      }
      detail::put_rows(all.inputs, part.inputs, places);
      detail::put_rows(all.targets, part.targets, places);
    };
    std::apply([&](const auto&... sets) { (add(sets), ...); }, sets_);
    return all;
  }

 private:
  std::tuple<First, More...> sets_;
};

}  // namespace sinter
