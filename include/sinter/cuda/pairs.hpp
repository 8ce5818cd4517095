// sinter/cuda/pairs.hpp: keys with values that are to be sorted, and the sorter that replaces Sinter's radix sort.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "sinter/core/shape.hpp"

namespace sinter::cuda_impl {

class context;

/// Keys with values, and room for as many of both.
struct pair_buffers {
  std::uint64_t *keys = nullptr, *spare_keys = nullptr;
  std::uint32_t *values = nullptr, *spare_values = nullptr;

  /// What was spare holds the pairs now.
  void turn() {
    std::swap(keys, spare_keys);
    std::swap(values, spare_values);
  }
};

/// Puts a stable sort of the first n pairs, by the lowest `bits` bits of their keys, on the stream of the context. Both
/// buffers may be written; turn() says that the pairs end in the spare one.
using pair_sorter = void (*)(context&, pair_buffers&, index_t n, int bits);

/// The sorter to use, set by cub.hpp before main; null for Sinter's own.
inline std::atomic<pair_sorter> other_sorter{nullptr};

}  // namespace sinter::cuda_impl
