// sinter/cpu/rotary.hpp: pairs of elements turned, on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/ops/rotary.hpp"

namespace sinter::cpu_impl {

using ops::rotary_work;

/// The pairs at place i of a row whose halves lie side by side.
template <class T, class Place>
SINTER_INLINE void turn_at(Place i, index_t n, const T* x, const T* cos, const T* sin, T* y, vector<T> sign, bool add) {
  const vector<T> a = load_row(x, i, n), b = load_row(x + n, i, n), c = load_row(cos, i, n),
                  s = load_row(sin, i, n) * sign;
  vector<T> first = a * c - b * s, second = b * c + a * s;
  if (add) {
    first = first + load_row(y, i, n);
    second = second + load_row(y + n, i, n);
  }
  store_row(y, i, n, first);
  store_row(y + n, i, n, second);
}

template <class T>
SINTER_KERNEL void turn_dense_row(const rotary_work<T>& w, const T* x, const T* cos, const T* sin, T* y) {
  const index_t n = w.extents.pairs;
  const vector<T> sign(w.sign);
  index_t i = 0;
  for (; i + lanes <= n; i += lanes) turn_at<T>(inside{i}, n, x, cos, sin, y, sign, w.add);
  if (i < n) turn_at<T>(at_end{i}, n, x, cos, sin, y, sign, w.add);
}

template <class T>
void turn_row(const rotary_work<T>& w, const T* x, const T* cos, const T* sin, T* y) {
  using C = compute_type<T>;
  const auto put = [&](T& to, C value) { to = static_cast<T>(w.add ? static_cast<C>(to) + value : value); };
  const index_t n = w.extents.pairs, step = w.interleaved ? 2 : 1, apart = w.interleaved ? 1 : n;
  if (!w.interleaved && w.from.elements == 1 && w.to.elements == 1) {
    turn_dense_row(w, x, cos, sin, y);
  } else {
    for (index_t i = 0; i < n; ++i) {
      const C a = static_cast<C>(x[step * i * w.from.elements]),
              b = static_cast<C>(x[(step * i + apart) * w.from.elements]), c = static_cast<C>(cos[i]),
              s = static_cast<C>(sin[i]) * w.sign;
      put(y[step * i * w.to.elements], a * c - b * s);
      put(y[(step * i + apart) * w.to.elements], b * c + a * s);
    }
  }
  for (index_t i = 2 * n; i < 2 * n + w.extents.rest; ++i)
    put(y[i * w.to.elements], static_cast<C>(x[i * w.from.elements]));
}

template <class T>
void turn(const rotary_work<T>& w, thread_pool& pool) {
  const auto& e = w.extents;
  const index_t rows = e.batch * e.heads * e.steps, columns = 2 * e.pairs + e.rest;
  if (rows == 0 || columns == 0) return;
  const index_t each = std::max<index_t>(8192 / columns, 1);
  pool.parallel_for((rows + each - 1) / each, [&](index_t task) {
    const index_t end = std::min((task + 1) * each, rows);
    for (index_t row = task * each; row < end; ++row) {
      const index_t t = row % e.steps, h = row / e.steps % e.heads, n = row / (e.steps * e.heads);
      const index_t angle = n * e.angles_of_batch + t * e.pairs;
      turn_row(w, w.x + w.from.row(n, h, t), w.cos + angle, w.sin + angle, w.y + w.to.row(n, h, t));
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::rotary_op, D> : rotary_kernels<D> {
  template <class T, int R>
  static void turn(const extents<R>&, const ops::rotary_work<T>& work) {
    cpu_impl::turn(work, backend<D>::pool());
  }
};

}  // namespace sinter::detail
