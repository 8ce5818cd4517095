// sinter/cpu/linear_cross_entropy.hpp: the losses of rows of scores, and their slopes, on the host.
#pragma once

#include "sinter/cpu/backend.hpp"
#include "sinter/cpu/rows.hpp"
#include "sinter/ops/linear_cross_entropy.hpp"

namespace sinter::cpu_impl {

/// A row of scores, to which a bias is added where there is one.
template <bool Biased, class T>
struct row_of_scores {
  const T* x;
  const T* bias;
  index_t n;

  template <class Place>
  SINTER_INLINE vector<T> operator()(Place i) const {
    if constexpr (Biased) return load_row<T>(x, i, n) + load_row<T>(bias, i, n);
    else return load_row<T>(x, i, n);
  }
  SINTER_INLINE compute_type<T> at(index_t i) const {
    using C = compute_type<T>;
    if constexpr (Biased) return C(x[i]) + C(bias[i]);
    else return C(x[i]);
  }
};

template <bool Biased, class T>
SINTER_KERNEL void class_loss_of_row(const ops::class_loss& what, const row_of_scores<Biased, T>& v, std::int64_t label,
                                     const T* next, T* loss, compute_type<T>* parts) {
  using C = compute_type<T>;
  const row_folds<T> r{v.n};
  const C shift = ops::row_shift(r.max(v));
  const C sum = row_sum_of_long<T>(v.n, [&](auto i) SINTER_INLINE_LAMBDA {
    __builtin_prefetch(next + i.first);
    return within_row<T>(i, v.n, math::exp(v(i) - vector<T>(shift)), C(0));
  });
  const C rest = math::log(sum);
  parts[0] = shift;
  parts[1] = rest;
  if (label == what.ignored) {
    *loss = T(0);
    return;
  }
  C below = 0;
  if (what.smooths())
    below = row_sum<T>(
        v.n, [&](auto i) SINTER_INLINE_LAMBDA { return within_row<T>(i, v.n, v(i) - vector<T>(shift), C(0)); });
  *loss = static_cast<T>(what.loss(shift, rest, v.at(label), below, v.n));
}

template <bool Biased, class T>
SINTER_KERNEL void class_slopes_of_row(const ops::class_loss& what, const row_of_scores<Biased, T>& v,
                                       std::int64_t label, const compute_type<T>* parts, compute_type<T> g, T* to) {
  using C = compute_type<T>;
  if (label == what.ignored) return std::fill(to, to + v.n, T(0));
  const C at_label = what.slope_at_label(parts[0], parts[1], v.at(label), v.n) * g;
  const vector<T> shift(parts[0]), rest(parts[1]), factor(what.factor(parts[0], parts[1]) * g);
  if (what.smooths()) {
    const vector<T> share(what.template share<C>(v.n) * g);
    put_row(to, v.n, false,
            [&](auto i) SINTER_INLINE_LAMBDA { return math::exp((v(i) - shift) - rest) * factor - share; });
  } else {
    put_row(to, v.n, false, [&](auto i) SINTER_INLINE_LAMBDA { return math::exp((v(i) - shift) - rest) * factor; });
  }
  to[label] = static_cast<T>(at_label);
}

template <class T>
void class_losses(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels, T* loss,
                  compute_type<T>* parts, thread_pool& pool) {
  in_row_groups(s.count, s.n, pool, [&](index_t first, index_t last) {
    for (index_t at = first; at < last; ++at) {
      const T *const x = s.scores + at * s.n, *const next = at + 1 < s.count ? x + s.n : x;
      if (s.bias == nullptr)
        class_loss_of_row<false, T>(what, {x, nullptr, s.n}, labels[at], next, loss + at, parts + 2 * at);
      else class_loss_of_row<true, T>(what, {x, s.bias, s.n}, labels[at], next, loss + at, parts + 2 * at);
    }
  });
}

template <class T>
void class_slopes(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                  const compute_type<T>* parts, const T* g, T* to, thread_pool& pool) {
  in_row_groups(s.count, s.n, pool, [&](index_t first, index_t last) {
    for (index_t at = first; at < last; ++at) {
      const T* const x = s.scores + at * s.n;
      const auto g_of_row = compute_type<T>(g[at]);
      if (s.bias == nullptr)
        class_slopes_of_row<false, T>(what, {x, nullptr, s.n}, labels[at], parts + 2 * at, g_of_row, to + at * s.n);
      else class_slopes_of_row<true, T>(what, {x, s.bias, s.n}, labels[at], parts + 2 * at, g_of_row, to + at * s.n);
    }
  });
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct kernels<ops::class_loss, D> {
  using indices = tensor<std::int64_t, 1, D>;

  template <class T>
  static void losses(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                     T* loss, compute_type<T>* parts) {
    cpu_impl::class_losses<T>(what, s, labels, loss, parts, cpu_impl::pool_of<D>());
  }
  template <class T>
  static void slopes(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                     const compute_type<T>* parts, const T* g, T* to) {
    cpu_impl::class_slopes<T>(what, s, labels, parts, g, to, cpu_impl::pool_of<D>());
  }
  static void check_targets(const char* op, const ops::class_loss& what, const indices& labels, index_t n) {
    for (index_t i = 0; i < labels.numel(); ++i) {
      const std::int64_t label = labels.data()[i];
      if (label != what.ignored && (label < 0 || label >= n)) refuse_index({op, "target"}, label, i, n);
    }
  }
  template <class T>
  static double mean_factor(const ops::class_loss& what, const indices& labels) {
    index_t count = 0;
    for (index_t i = 0; i < labels.numel(); ++i) count += labels.data()[i] != what.ignored;
    return count > 0 ? static_cast<double>(labels.numel()) / static_cast<double>(count) : 0;
  }
};

}  // namespace sinter::detail
