// sinter/cuda/recurrent.hpp: the elementwise work of recurrent ops on GPUs.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/recurrent.hpp"

namespace sinter::cuda_impl {

/// A unit_pass: a thread per element.
template <class F, class T>
struct units_body {
  index_t rows, columns;
  ops::matrix_rows in[std::size_t{F::inputs}], out[std::size_t{F::outputs}];

  SINTER_WORD index_t numel() const { return rows * columns; }
  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    using C = compute_type<T>;
    for (index_t i = g.block() * g.threads() + g.thread(); i < numel(); i += g.blocks() * g.threads()) {
      const index_t row = i / columns, column = i - row * columns;
      C x[std::size_t{F::inputs}], y[std::size_t{F::outputs}];
      for (int k = 0; k < F::inputs; ++k)
        x[k] = static_cast<C>(static_cast<const T*>(in[k].data)[row * in[k].stride + column]);
      F::run(x, y);
      for (int k = 0; k < F::outputs; ++k)
        static_cast<T*>(out[k].data)[row * out[k].stride + column] = static_cast<T>(y[k]);
    }
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::unit_pass, D> {
  template <class F, class T>
  static void run(index_t rows, index_t columns, const ops::matrix_rows* in, const ops::matrix_rows* out) {
    cuda_impl::units_body<F, T> body{rows, columns, {}, {}};
    for (int k = 0; k < F::inputs; ++k) body.in[k] = in[k];
    for (int k = 0; k < F::outputs; ++k) body.out[k] = out[k];
    const extents<2> shape{{rows, columns}};
    cuda_impl::launch_on<D>({"a step of a recurrence", shape}, body,
                            {cuda_impl::blocks_for(body.numel(), cuda_impl::block_threads), 0});
  }
};

}  // namespace sinter::detail
