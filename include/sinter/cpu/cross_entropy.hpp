// sinter/cpu/cross_entropy.hpp: cross-entropy on the host: a row is read once, and stays in cache until it is done.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/ops/cross_entropy.hpp"

namespace sinter::cpu_impl {

/// loss[row] = logsumexp(x) - x[label]; both parts of the former are kept in lse[2 row] for backward.
template <class T>
void run_cross_entropy(const loop& l, bool is_leaf, const std::int64_t* labels, T* loss, compute_type<T>* lse,
                       index_t rows, index_t n, thread_pool& pool) {
  const producer<compute_type<T>> p(l, is_leaf);
  in_row_groups(rows, n, pool, [&](index_t first, index_t last) {
    for (index_t at = first; at < last; ++at) {
      const row<T> r = produced_row<T>(p, at, rows, n, row_buffer<1, compute_type<T>>(n));
      const auto [shift, sum] = r.sum_of_exp(r.x());
      const compute_type<T> rest = math::log(sum);
      lse[2 * at] = shift;
      lse[2 * at + 1] = rest;
      loss[at] = static_cast<T>(rest - (r.values[labels[at]] - shift));
    }
  });
}

/// dx = g[row] (exp(x - lse) - [column == label])
template <class T>
void reverse_cross_entropy(const loop& l, bool is_leaf, const std::int64_t* labels, const compute_type<T>* lse,
                           const T* g, T* dx, index_t rows, index_t n, bool add, thread_pool& pool) {
  using C = compute_type<T>;
  const producer<C> p(l, is_leaf);
  in_row_groups(rows, n, pool, [&](index_t first, index_t last) {
    for (index_t at = first; at < last; ++at) {
      const row<T> r = produced_row<T>(p, at, rows, n, row_buffer<1, compute_type<T>>(n));
      T* const d = dx + at * n;
      const C scale = g[at], at_label = add ? C(d[labels[at]]) : C(0);
      const vector<T> shift(lse[2 * at]), rest(lse[2 * at + 1]);
      const auto value = [&](auto i)
                             SINTER_INLINE_LAMBDA { return math::exp((r.x()(i) - shift) - rest) * vector<T>(scale); };
      if (add) put_row(d, n, false, [&](auto i) SINTER_INLINE_LAMBDA { return value(i) + load_row<T>(d, i, n); });
      else put_row(d, n, false, value);
      d[labels[at]] = at_label + std::expm1((r.values[labels[at]] - lse[2 * at]) - lse[2 * at + 1]) * scale;
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::cross_entropy_op, D> {
  template <class T, class Epilogue, class E>
  static tensor<compute_type<T>, 1, D> forward(ops::cross_entropy_op, const tensor<T, 1, D>& loss, const Epilogue*,
                                               const E& x, const tensor<std::int64_t, 1, D>& labels) {
    // They may have changed since the expression was made.
    check_indices({"cross_entropy", "label"}, labels, x.shape()[1]);
    const auto lse = tensor<compute_type<T>, 1, D>::uninitialized({{2 * loss.numel()}});
    cpu_impl::with_producer(x, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::run_cross_entropy<T>(l, is_leaf, labels.data(), loss.data(), lse.data(), x.shape()[0], x.shape()[1],
                                     cpu_impl::pool_of<D>());
    });
    return lse;
  }
  template <class Backward>
  static void reverse(ops::cross_entropy_op, const Backward& b) {
    const auto& x = b.template operand<0>();
    const auto& labels = b.template operand<1>();
    check_indices({"backward of 'cross_entropy'", "label"}, labels, x.shape()[1]);
    const auto dx = b.template place_of<0>();
    using T = element_of<decltype(dx.to)>;
    cpu_impl::with_producer(x, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::reverse_cross_entropy<T>(l, is_leaf, labels.data(), b.saved.data(), b.gradient().data(), dx.to.data(),
                                         x.shape()[0], x.shape()[1], dx.add, cpu_impl::pool_of<D>());
    });
  }
};

}  // namespace sinter::detail
