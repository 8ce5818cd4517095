// sinter/cpu/index.hpp: reading and adding at indices held in a tensor.
#pragma once

#include <algorithm>

#include "sinter/cpu/loop.hpp"
#include "sinter/ops/gather.hpp"

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

/// Part of a gather: `rows` places along its axis by `columns` elements that lie behind each. Offsets of the first of x
/// (whose coordinate on the axis is 0), index and y.
struct gather_part {
  index_t x = 0, index = 0, y = 0;
  index_t rows = 0, columns = 1;
};

/// Calls f(part) for parts that cover all, of about 16384 elements; with whole_axis none of them shares elements of x
/// with another. The last axis of g is its own, or what all axes behind it became.
template <class F>
void for_parts(const gather_shape& g, bool whole_axis, thread_pool& pool, const F& f) {
  constexpr index_t wanted = 16384;
  const int last = g.rank - 1;
  const index_t n = g.shape[g.axis], inner = g.axis == last ? 1 : g.shape[last];
  index_t outer = 1;
  for (int d = 0; d < last; ++d) outer *= d == g.axis ? 1 : g.shape[d];
  if (outer * n * inner == 0) return;
  index_t rows = n, columns = std::min(inner, wanted);
  if (whole_axis) columns = std::min(inner, std::max<index_t>(wanted / n, 64));
  else rows = std::min(n, wanted / columns);
  const index_t down = (n + rows - 1) / rows, across = (inner + columns - 1) / columns;
  const index_t parts = outer * down * across, grain = std::max<index_t>(wanted / (rows * columns), 1);
  pool.parallel_for((parts + grain - 1) / grain, [&](index_t t) {
    for (index_t number = t * grain; number < std::min((t + 1) * grain, parts); ++number) {
      const bool whole = down * across == 1;  // short lines are one part each, and divisions take longer than they
      const index_t k = whole ? 0 : number / across % down * rows, j = whole ? 0 : number % across * columns;
      gather_part p{0, k * g.index_strides[g.axis], k * g.y_strides[g.axis], std::min(rows, n - k),
                    std::min(columns, inner - j)};
      index_t rest = whole ? number : number / (across * down);
      for (int d = last; d >= 0; --d) {
        if (d == g.axis) continue;
        index_t c = j;
        if (d != last) {
          c = rest;
          if (g.shape[d] != outer) {
            c = rest % g.shape[d];
            rest /= g.shape[d];
          }
        }
        p.x += c * g.x_strides[d];
        p.index += c * g.index_strides[d];
        p.y += c * g.y_strides[d];
      }
      f(p);
    }
  });
}

/// The axes behind that of the gather as one, where strides allow.
inline gather_shape join_axes_behind(gather_shape g) {
  const int first = g.axis + 1;
  index_t* const strides[] = {g.x_strides + first, g.index_strides + first, g.y_strides + first};
  if (first < g.rank)
    g.rank =
        first + sinter::detail::coalesce_axes(g.shape + first, g.rank - first, 3, [&](int s) { return strides[s]; });
  return g;
}

/// f(elements of x, their step, those of y, theirs, how many) for all that are picked, in order along the axis.
template <class T, class U, class F>
void for_picked(const gather_shape& shape, T* x, const std::int64_t* index, U* y, bool whole_axis, thread_pool& pool,
                const F& f) {
  const gather_shape g = join_axes_behind(shape);
  const int last = g.rank - 1;
  const index_t sx = g.x_strides[g.axis], si = g.index_strides[g.axis], sy = g.y_strides[g.axis];
  const index_t dx = g.x_strides[last], di = g.index_strides[last], dy = g.y_strides[last];
  for_parts(g, whole_axis, pool, [&](const gather_part& p) {
    if (g.axis == last) {
      for (index_t k = 0; k < p.rows; ++k) f(x + p.x + index[p.index + k * si] * sx, 1, y + p.y + k * sy, 1, 1);
      return;
    }
    for (index_t k = 0; k < p.rows; ++k) {
      const std::int64_t* const i = index + p.index + k * si;
      U* const to = y + p.y + k * sy;
      if (di == 0 && p.columns > 1) f(x + p.x + *i * sx, dx, to, dy, p.columns);
      else
        for (index_t j = 0; j < p.columns; ++j) f(x + p.x + i[j * di] * sx + j * dx, 1, to + j * dy, 1, 1);
    }
  });
}

template <class T>
void gather(const gather_shape& g, const T* x, const std::int64_t* index, T* y, thread_pool& pool) {
  for_picked(g, x, index, y, false, pool, [](const T* from, index_t step, T* to, index_t to_step, index_t n) {
    if (n == 1) *to = *from;
    else if (step == 1 && to_step == 1) std::copy_n(from, n, to);
    else
      for (index_t j = 0; j < n; ++j) to[j * to_step] = from[j * step];
  });
}

/// x[index] += y, in order along each line. Sums may be of a wider type T than what is added.
template <class T, class U>
void scatter_add(const gather_shape& g, T* x, const std::int64_t* index, const U* y, thread_pool& pool) {
  for_picked(g, x, index, y, true, pool, [](T* to, index_t step, const U* from, index_t from_step, index_t n) {
    index_t j = 0;
    if constexpr (std::is_floating_point_v<T>) {
      if (step == 1 && from_step == 1) {
        for (; j + lanes <= n; j += lanes) {
          if constexpr (std::is_same_v<T, U>)
            math::write(to + j, math::read<lanes>(to + j) + math::read<lanes>(from + j));
          else
            for (index_t k = j; k < j + lanes; ++k) to[k] += static_cast<T>(from[k]);
        }
      }
    }
    for (; j < n; ++j) to[j * step] += static_cast<T>(from[j * from_step]);
  });
}

/// y to x[index] by a rule, in order along each line.
template <class Rule, class T, class U>
void scatter(const gather_shape& g, T* x, const std::int64_t* index, U* y, thread_pool& pool) {
  if constexpr (std::is_same_v<Rule, ops::scatter_rule::add>) {
    scatter_add<T, U>(g, x, index, y, pool);
  } else {
    for_picked(g, x, index, y, true, pool, [](T* to, index_t step, U* from, index_t from_step, index_t n) {
      if (step == 1 && from_step == 1)
        for (index_t j = 0; j < n; ++j) Rule::apply(to[j], from[j]);
      else
        for (index_t j = 0; j < n; ++j) Rule::apply(to[j * step], from[j * from_step]);
    });
  }
}

template <class T, class U, int R, device D>
gather_shape gather_shape_of(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                             const tensor<U, R, D>& y) {
  gather_shape g;
  g.rank = R;
  g.axis = axis;
  for (int d = 0; d < R; ++d) {
    g.shape[d] = index.shape()[d];
    g.x_strides[d] = x.strides()[d];
    g.index_strides[d] = index.strides()[d];
    g.y_strides[d] = y.strides()[d];
  }
  return g;
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::gather_op, D> : kernels<ops::picked_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::gather_op& op, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, R, D>& x,
                      const tensor<std::int64_t, R, D>& index) {
    cpu_impl::gather(cpu_impl::gather_shape_of(x, op.axis, index, y), x.data(), index.data(), y.data(),
                     cpu_impl::pool_of<D>());
  }
};

template <class Rule, device D>
  requires is_cpu_v<D>
struct kernels<ops::scatter_by<Rule>, D> {
  template <class T, class U, int R>
  static void run(const ops::scatter_by<Rule>& op, const tensor<T, R, D>& x, const tensor<std::int64_t, R, D>& index,
                  const tensor<U, R, D>& y) {
    cpu_impl::scatter<Rule>(cpu_impl::gather_shape_of(x, op.axis, index, y), x.data(), index.data(), y.data(),
                            cpu_impl::pool_of<D>());
  }
};

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::index_check, D> {
  static void run(const ops::index_check& asked, const std::int64_t* values, index_t n, index_t extent) {
    for (index_t i = 0; i < n; ++i)
      if (values[i] < 0 || values[i] >= extent) refuse_index(asked, values[i], i, extent);
  }
};

}  // namespace sinter::detail
