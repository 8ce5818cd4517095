// sinter/parallel/shards.hpp: a batch in parts that lie on their devices already, and datasets that give such batches.
#pragma once

#include <span>
#include <utility>

#include "sinter/data/dataset.hpp"
#include "sinter/expr/evaluate.hpp"
#include "sinter/parallel/parts.hpp"

namespace sinter {

// Names in messages.
template <class...>
struct shards_of_what_has_no_samples;
struct pass_a_tensor_of_rank_1_or_more;

namespace nn {

/// The samples of a batch, N / G of N on each of G devices D and one more on the first N % G; see shard().
template <class X, device... D>
class shards {
 public:
  static constexpr int count = sizeof...(D);
  using batch_type = X;

  explicit shards(const X& batch) : samples_(batch.extent(0)) {
    sinter::detail::each_part<count>([&](auto part) {
      const auto cut = range(int{part()});
      using D0 = sinter::detail::type_of_part<part(), D...>;
      at_mutable<part()>() = batch.slice(0, cut.begin, cut.end).template to<D0>();
    });
  }

  /// How many samples there are in all.
  index_t size() const { return samples_; }
  sinter::detail::sample_range range(int part) const { return sinter::detail::samples_of_part(samples_, count, part); }
  /// The samples of part I, on device number I of D.
  template <std::size_t I>
  const auto& at() const {
    return parts_.template at<I>();
  }

 private:
  template <std::size_t I>
  auto& at_mutable() {
    return parts_.template at<I>();
  }
  index_t samples_;
  sinter::detail::parts<sinter::detail::moved_type<X, D>...> parts_;
};

namespace detail {

template <class X, class... D>
constexpr auto find_shard_mistake() {
  using sinter::detail::mistake;
  if constexpr (!sinter::detail::is_tensor<X>) return sinter::detail::not_operands{};
  else if constexpr (X::rank < 1) return mistake<shards_of_what_has_no_samples<X>, pass_a_tensor_of_rank_1_or_more>{};
  else if constexpr (!sinter::detail::all_different<D...>)
    return mistake<a_device_is_listed_twice_in<D...>, name_each_device_once>{};
  else return sinter::detail::fitting<void>{};
}
template <class X, class... D>
using shard_mistake = decltype(find_shard_mistake<sinter::detail::bare<X>, D...>());

}  // namespace detail

/// Cuts a tensor along its first axis over devices, evenly: 10 samples over 4 are 3, 3, 2, 2. For
/// data_parallel_over::backward, which then copies nothing.
///
///     auto parts = nn::shard<numa<0>, numa<1>>(images);
template <device... D, class X>
  requires(sizeof...(D) > 0 && sinter::detail::is_fitting<detail::shard_mistake<X, D...>>)
shards<X, D...> shard(const X& batch) {
  return shards<X, D...>(batch);
}
template <device... D, class X, class Problem = typename detail::shard_mistake<X, D...>::problem,
          class Fix = typename detail::shard_mistake<X, D...>::fix>
void shard(const X&) = delete;

/// What sharded() returns.
template <class Set, device... D>
class sharded_dataset {
 public:
  explicit sharded_dataset(Set set) : set_(std::move(set)) {}

  index_t size() const { return set_.size(); }
  auto gather(std::span<const index_t> rows) const {
    auto all = sinter::detail::gather(set_, rows);
    return batch<shards<decltype(all.inputs), D...>, shards<decltype(all.targets), D...>>{shard<D...>(all.inputs),
                                                                                          shard<D...>(all.targets)};
  }

 private:
  Set set_;
};

/// A dataset whose batches come in shards, each on its device. The thread of the loader copies them ahead of their use.
///
///     data_loader loader(nn::sharded<numa<0>, numa<1>>(tensor_dataset(images, labels)), {.batch_size = 128});
///     for (const auto& [x, y] : loader) model.backward(x, y, loss);
template <device... D, class Set>
  requires(sizeof...(D) > 0 && sinter::detail::all_different<D...>)
sharded_dataset<Set, D...> sharded(Set set) {
  return sharded_dataset<Set, D...>(std::move(set));
}

}  // namespace nn
}  // namespace sinter
