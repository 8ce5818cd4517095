// sinter/cpu/searchsorted.hpp: the places of values among sorted elements.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/searchsorted.hpp"

namespace sinter::cpu_impl {

/// Of `lines` lines of m values each, among n sorted elements of their own, or in all lines among the same.
template <class T>
void search(const T* sorted, index_t n, bool one_line, const T* values, index_t lines, index_t m, bool right,
            std::int64_t* places, thread_pool& pool) {
  constexpr index_t grain = 4096;
  const index_t all = lines * m;
  pool.parallel_for((all + grain - 1) / grain, [&](index_t t) {
    for (index_t i = t * grain; i < all && i < (t + 1) * grain; ++i)
      places[i] = ops::place_among(one_line ? sorted : sorted + i / m * n, n, values[i], right);
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::search_op, D> {
  template <class T, int S, int R, class Epilogue>
  static void forward(const ops::search_op& op, const tensor<std::int64_t, R, D>& y, const Epilogue*,
                      const tensor<T, S, D>& sorted, const tensor<T, R, D>& values) {
    if (y.numel() == 0) return;
    index_t m = values.numel();
    if constexpr (S > 1) m = values.shape()[R - 1];
    cpu_impl::search(sorted.data(), sorted.shape()[S - 1], S == 1, values.data(), values.numel() / m, m, op.right,
                     y.data(), cpu_impl::pool_of<D>());
  }
};

}  // namespace sinter::detail
