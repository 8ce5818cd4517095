// sinter/cpu/count.hpp: how often each of the first integers occurs.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/ops/bincount.hpp"

namespace sinter::cpu_impl {

/// Adds to counts[v] the number of times that `l` produces v; values outside [0, bins) do not count.
SINTER_SHARED void count(loop& l, bool is_leaf, std::int64_t* counts, index_t bins, thread_pool& pool);

#if SINTER_DEFINES

SINTER_SHARED void count(loop& l, bool is_leaf, std::int64_t* counts, index_t bins, thread_pool& pool) {
  constexpr index_t run = producer<std::int64_t>::run;
  const index_t n = l.numel();
  const producer<std::int64_t> p(l, is_leaf);
  const auto count_range = [&](index_t begin, index_t end, std::int64_t* to) {
    alignas(64) std::int64_t buffer[run];
    for (index_t at = begin; at < end; at += run) {
      const index_t m = end - at < run ? end - at : run;
      const std::int64_t* const v = p.get(at, m, buffer);
      for (index_t i = 0; i < m; ++i)
        if (v[i] >= 0 && v[i] < bins) ++to[v[i]];
    }
  };
  const index_t grain = 4 * bins < row_piece ? row_piece : 4 * bins;  // a task has counts of its own
  const index_t tasks = n / grain;
  if (tasks < 2) return count_range(0, n, counts);
  const detail::temporary_array<std::int64_t> parts(tasks * bins);
  pool.parallel_for(tasks, [&](index_t t) {
    std::fill_n(&parts[t * bins], bins, 0);
    count_range(t * grain, t + 1 < tasks ? (t + 1) * grain : n, &parts[t * bins]);
  });
  for (index_t t = 0; t < tasks; ++t)
    for (index_t b = 0; b < bins; ++b) counts[b] += parts[t * bins + b];
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::count_op, D> {
  template <class E>
  static void run(ops::count_op, const E& e, const tensor<std::int64_t, 1, D>& counts) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::count(l, is_leaf, counts.data(), counts.numel(), cpu_impl::pool_of<D>());
    });
  }
};

}  // namespace sinter::detail
