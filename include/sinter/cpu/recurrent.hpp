// sinter/cpu/recurrent.hpp: the elementwise work of recurrent ops on the host.
#pragma once

#include "sinter/cpu/rows.hpp"
#include "sinter/ops/recurrent.hpp"

namespace sinter::cpu_impl {

/// F on the vectors at place i of row `at` of the matrices.
template <class F, class T, class Place>
SINTER_INLINE void run_units_at(Place i, index_t at, index_t columns, const ops::matrix_rows* in,
                                const ops::matrix_rows* out) {
  vector<T> x[std::size_t{F::inputs}], y[std::size_t{F::outputs}];
  for (int k = 0; k < F::inputs; ++k)
    x[k] = load_row(static_cast<const T*>(in[k].data) + at * in[k].stride, i, columns);
  F::run(x, y);
  for (int k = 0; k < F::outputs; ++k) store_row(static_cast<T*>(out[k].data) + at * out[k].stride, i, columns, y[k]);
}
/// A unit_pass over rows [first, last).
template <class F, class T>
SINTER_KERNEL void run_units_of(index_t first, index_t last, index_t columns, const ops::matrix_rows* in,
                                const ops::matrix_rows* out) {
  for (index_t at = first; at < last; ++at) {
    index_t i = 0;
    for (; i + lanes <= columns; i += lanes) run_units_at<F, T>(inside{i}, at, columns, in, out);
    if (i < columns) run_units_at<F, T>(at_end{i}, at, columns, in, out);
  }
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::unit_pass, D> {
  template <class F, class T>
  static void run(index_t rows, index_t columns, const ops::matrix_rows* in, const ops::matrix_rows* out) {
    constexpr index_t wanted = 4096;  // elements of a task
    const index_t each = columns < wanted ? wanted / columns : 1;
    cpu_impl::pool_of<D>().parallel_for((rows + each - 1) / each, [&](index_t task) {
      const index_t first = task * each, last = first + each < rows ? first + each : rows;
      cpu_impl::run_units_of<F, T>(first, last, columns, in, out);
    });
  }
};

}  // namespace sinter::detail
