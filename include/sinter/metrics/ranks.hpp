// sinter/metrics/ranks.hpp: numbers of all ranks of a communicator, which has all_gather and all_reduce of its own.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "sinter/core/create.hpp"
#include "sinter/core/reduction.hpp"

namespace sinter::detail {

/// The sums over the ranks of a few numbers.
template <class T, class C>
void sum_over_ranks(C& ranks, std::span<T> numbers, const char* name) {
  const auto n = static_cast<index_t>(numbers.size());
  const tensor<T, 1> sums = ranks.all_reduce(from_data<T>(numbers, {n}), reduction::sum, name).get();
  std::copy(sums.begin(), sums.end(), numbers.begin());
}

/// The numbers of rank 0, 1, ...; each may have another count of them.
template <class C>
std::vector<std::vector<double>> gather_over_ranks(C& ranks, std::vector<double> mine, const char* name) {
  const tensor<std::int64_t, 1> counts =
      ranks.all_gather(tensor<std::int64_t, 1>{static_cast<std::int64_t>(mine.size())}, name).get();
  const std::int64_t most = *std::max_element(counts.data(), counts.data() + counts.numel());
  std::vector<std::vector<double>> of_ranks(counts.span().size());
  if (most == 0) return of_ranks;
  mine.resize(static_cast<std::size_t>(most));  // all ranks gather equally many
  const auto sent = tensor<double, 1>::uninitialized({{most}});
  std::copy(mine.begin(), mine.end(), sent.data());
  const tensor<double, 1> all = ranks.all_gather(sent, name).get();
  const double* from = all.data();
  for (std::size_t r = 0; r < of_ranks.size(); ++r, from += most)
    of_ranks[r].assign(from, from + std::clamp<std::int64_t>(counts.span()[r], 0, most));
  return of_ranks;
}

}  // namespace sinter::detail
