// sinter/cuda/searchsorted.hpp: the body that finds the places of values among sorted elements.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/searchsorted.hpp"

namespace sinter::cuda_impl {

/// A thread per value; each m of them belong to a line of n sorted elements, or all to the only one.
template <class T>
struct search_body {
  const T* sorted;
  index_t n;
  bool one_line;
  const T* values;
  index_t all, m;
  bool right;
  std::int64_t* places;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t i = g.block() * g.threads() + g.thread(); i < all; i += g.blocks() * g.threads())
      places[i] = ops::place_among(one_line ? sorted : sorted + i / m * n, n, values[i], right);
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::search_op, D> {
  template <class T, int S, int R, class Epilogue>
  static void forward(const ops::search_op& op, const tensor<std::int64_t, R, D>& y, const Epilogue*,
                      const tensor<T, S, D>& sorted, const tensor<T, R, D>& values) {
    if (y.numel() == 0) return;
    index_t m = values.numel();
    if constexpr (S > 1) m = values.shape()[R - 1];
    const cuda_impl::search_body<T> body{
        access::data(sorted), sorted.shape()[S - 1], S == 1, access::data(values), values.numel(), m, op.right,
        access::data(y)};
    cuda_impl::launch_on<D>({"searchsorted", values.shape()}, body,
                            {cuda_impl::blocks_for(values.numel(), cuda_impl::block_threads), 0});
  }
};

}  // namespace sinter::detail
