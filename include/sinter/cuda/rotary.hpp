// sinter/cuda/rotary.hpp: pairs of elements turned, on GPUs.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/rotary.hpp"

namespace sinter::cuda_impl {

/// A thread for each pair, and for each element that stays.
template <class T>
struct rotary_body : ops::rotary_work<T> {
  using work = ops::rotary_work<T>;
  using work::extents, work::from, work::to, work::x, work::cos, work::sin, work::y, work::sign, work::interleaved,
      work::add;

  SINTER_WORD index_t numel() const {
    return extents.batch * extents.heads * extents.steps * (extents.pairs + extents.rest);
  }
  SINTER_WORD void put(T& at, compute_type<T> value) const {
    at = static_cast<T>(add ? static_cast<compute_type<T>>(at) + value : value);
  }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    const index_t width = extents.pairs + extents.rest;
    for (index_t k = g.block() * g.threads() + g.thread(); k < numel(); k += g.blocks() * g.threads()) {
      const index_t row = k / width, i = k - row * width;
      const index_t t = row % extents.steps, h = row / extents.steps % extents.heads,
                    n = row / (extents.steps * extents.heads);
      const T* const in = x + from.row(n, h, t);
      T* const out = y + to.row(n, h, t);
      if (i >= extents.pairs) {
        const index_t at = extents.pairs + i;
        put(out[at * to.elements], static_cast<C>(in[at * from.elements]));
        continue;
      }
      const index_t first = interleaved ? 2 * i : i, second = interleaved ? first + 1 : first + extents.pairs;
      const index_t angle = n * extents.angles_of_batch + t * extents.pairs + i;
      const C a = static_cast<C>(in[first * from.elements]), b = static_cast<C>(in[second * from.elements]),
              c = static_cast<C>(cos[angle]), s = static_cast<C>(sin[angle]) * sign;
      put(out[first * to.elements], a * c - b * s);
      put(out[second * to.elements], b * c + a * s);
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::rotary_op, D> : rotary_kernels<D> {
  template <class T, int R>
  static void turn(const extents<R>& shape, const ops::rotary_work<T>& work) {
    cuda_impl::launch_each<D>({"rotary", shape}, cuda_impl::rotary_body<T>{work});
  }
};

}  // namespace sinter::detail
