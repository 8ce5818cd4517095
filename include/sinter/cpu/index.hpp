// sinter/cpu/index.hpp: reading and adding at indices held in a tensor.
#pragma once

#include "sinter/cpu/loop.hpp"

namespace sinter::cpu_impl {

/// One gather: element c of `y` (or `index`, of the same shape) belongs to element c of `x` with coordinate `axis`
/// replaced by index[c]. Strides in elements.
struct gather_shape {
  int rank = 0;
  int axis = 0;
  index_t shape[max_rank] = {};
  index_t x_strides[max_rank] = {};
  index_t index_strides[max_rank] = {};
  index_t y_strides[max_rank] = {};
};

/// Calls f(line): offsets of x, index and y at the start of each line along the axis. Lines never share elements of x.
template <class F>
void for_lines(const gather_shape& g, thread_pool& pool, const F& f) {
  index_t lines = 1;
  for (int d = 0; d < g.rank; ++d) lines *= d == g.axis ? 1 : g.shape[d];
  if (lines == 0 || g.shape[g.axis] == 0) return;
  const index_t grain = 16384 / g.shape[g.axis] + 1;
  pool.parallel_for((lines + grain - 1) / grain, [&](index_t t) {
    const index_t end = (t + 1) * grain < lines ? (t + 1) * grain : lines;
    for (index_t line = t * grain; line < end; ++line) {
      index_t rest = line;
      index_t x = 0, i = 0, y = 0;
      for (int d = g.rank - 1; d >= 0; --d) {
        if (d == g.axis) continue;
        const index_t c = rest % g.shape[d];
        rest /= g.shape[d];
        x += c * g.x_strides[d];
        i += c * g.index_strides[d];
        y += c * g.y_strides[d];
      }
      f(x, i, y);
    }
  });
}

template <class T>
void gather(const gather_shape& g, const T* x, const std::int64_t* index, T* y, thread_pool& pool) {
  const index_t n = g.shape[g.axis];
  const index_t sx = g.x_strides[g.axis], si = g.index_strides[g.axis], sy = g.y_strides[g.axis];
  for_lines(g, pool, [&](index_t ox, index_t oi, index_t oy) {
    for (index_t k = 0; k < n; ++k) y[oy + k * sy] = x[ox + index[oi + k * si] * sx];
  });
}

/// x[index] += y, in order along each line.
template <class T>
void scatter_add(const gather_shape& g, T* x, const std::int64_t* index, const T* y, thread_pool& pool) {
  const index_t n = g.shape[g.axis];
  const index_t sx = g.x_strides[g.axis], si = g.index_strides[g.axis], sy = g.y_strides[g.axis];
  for_lines(g, pool, [&](index_t ox, index_t oi, index_t oy) {
    for (index_t k = 0; k < n; ++k) x[ox + index[oi + k * si] * sx] += y[oy + k * sy];
  });
}

}  // namespace sinter::cpu_impl
