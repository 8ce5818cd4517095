// sinter/expr/backend.hpp: what expressions ask of a device, free of element type where compile time counts.
#pragma once

#include "sinter/expr/kernel.hpp"

namespace sinter::detail {

/// One result of a pass, or one gradient: dense memory, or a view. Strides are those of the pass's index space; 0 along
/// an axis sums over it (gradients of broadcast leaves).
struct sink_ref {
  void* data = nullptr;
  index_t strides[max_rank] = {};
  int element_size = 0;
  bool add = false;  ///< add to what is there instead of overwriting it
};

/// A matrix in device memory; strides in elements.
struct matrix_ref {
  void* data = nullptr;
  index_t rows = 0, columns = 0;
  index_t row_stride = 0, column_stride = 0;
};

/// Runs kernels on D. Specialised for the host devices in cpu/backend.hpp:
///   map<K>(plan, shape, rank, leaves, outputs, n_outputs)
///   reverse<K>(plan, shape, rank, leaves, n_leaves, sinks)
template <device D>
struct backend {
  static_assert(always_false<D>,
                "sinter: evaluating an expression on cuda<I> needs nvcc or clang's CUDA mode; this file was compiled as "
                "host-only C++");
};

}  // namespace sinter::detail
