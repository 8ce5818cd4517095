// sinter/cuda/count.hpp: the body that counts integers. Sums of integers are the same in any order.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/bincount.hpp"

namespace sinter::cuda_impl {

/// Adds to counts[v] the number of times that the source gives v; values outside [0, bins) do not count. Where the bins
/// fit, a block counts in shared memory first.
template <class Source>
struct count_body {
  static constexpr index_t most_shared = 4096;
  Source source;
  index_t n = 0, bins = 0;
  unsigned long long* counts = nullptr;

  SINTER_WORD bool shares() const { return bins <= most_shared; }
  launch_shape launch() const {
    const index_t blocks = blocks_for(n, 16 * block_threads);
    return {blocks < 1024 ? blocks : 1024, shares() ? static_cast<std::size_t>(bins) * sizeof(unsigned) : 0};
  }

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    unsigned* const mine = shares() ? g.template shared<unsigned>() : nullptr;
    if (mine != nullptr) {
      for (index_t b = g.thread(); b < bins; b += g.threads()) mine[b] = 0;
      g.sync();
    }
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const std::int64_t v = source(i);
      if (v < 0 || v >= bins) continue;
      if (mine != nullptr) g.add(mine + v, 1u);
      else g.add(counts + v, 1ull);
    }
    if (mine == nullptr) return;
    g.sync();
    for (index_t b = g.thread(); b < bins; b += g.threads())
      if (mine[b] > 0) g.add(counts + b, static_cast<unsigned long long>(mine[b]));
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::count_op, D> {
  template <class E>
  static void run(ops::count_op, const E& e, const tensor<std::int64_t, 1, D>& counts) {
    const cuda_impl::count_body<cuda_impl::source_for<E>> body{
        cuda_impl::source_of(e), e.shape().numel(), counts.numel(),
        reinterpret_cast<unsigned long long*>(access::data(counts))};
    const cuda_impl::work what{"a count", e.shape()};
    if (!cuda_impl::gpu<D>::folds().count(what, body.source, body.n, body.bins, body.counts))
      cuda_impl::launch_on<D>(what, body, body.launch());
  }
};

}  // namespace sinter::detail
