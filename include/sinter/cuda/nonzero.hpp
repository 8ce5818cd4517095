// sinter/cuda/nonzero.hpp: the body that writes where a mask is true.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/nonzero.hpp"

namespace sinter::cuda_impl {

/// From how many elements of the mask up to each are true.
struct true_places_body {
  const std::int64_t* sums;
  index_t n;
  std::int64_t* places;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    for (index_t i = g.block() * g.threads() + g.thread(); i < n; i += g.blocks() * g.threads()) {
      const std::int64_t before = i > 0 ? sums[i - 1] : 0;
      if (sums[i] != before) places[before] = i;
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::true_places_op, D> {
  static tensor<std::int64_t, 1, D> run(ops::true_places_op, const tensor<bool, 1, D>& mask) {
    const index_t n = mask.numel();
    const tensor<std::int64_t, 1, D> sums = cumsum(mask, 0);
    const auto places = tensor<std::int64_t, 1, D>::uninitialized({{sums[n - 1].item()}});
    cuda_impl::launch_on<D>({"nonzero", mask.shape()},
                            cuda_impl::true_places_body{access::data(sums), n, access::data(places)},
                            {cuda_impl::blocks_for(n, cuda_impl::block_threads), 0});
    return places;
  }
};

}  // namespace sinter::detail
