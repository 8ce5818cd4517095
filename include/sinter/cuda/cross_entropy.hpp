// sinter/cuda/cross_entropy.hpp: cross-entropy on GPUs: the threads of a group share a row.
#pragma once

#include "sinter/cuda/rows.hpp"
#include "sinter/ops/cross_entropy.hpp"

namespace sinter::cuda_impl {

/// loss[row] = logsumexp(x) - x[label]; both parts of the former are kept in lse[2 row] for backward.
template <class Source, class T>
struct cross_entropy_body : row_groups<compute_type<T>, row_lanes<T>, Source::leaves> {
  using C = compute_type<T>;
  Source source;
  const std::int64_t* labels;
  T* loss;
  C* lse;

  cross_entropy_body(const Source& x, const std::int64_t* label, T* to, C* parts, index_t count, index_t length)
      : row_groups<C, row_lanes<T>, Source::leaves>(count, length, 1),
        source(x.in_rows(row_lanes<T>, count, length)),
        labels(label),
        loss(to),
        lse(parts) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      const index_t length = this->n;
      const auto v = team.keep(source_row<row_lanes<T>, Source>(source, row * length));
      const auto [shift, sum] = sum_of_exp<C>(team, v);
      const C rest = math::log(sum);
      if (!there || team.place != 0) return;
      lse[2 * row] = shift;
      lse[2 * row + 1] = rest;
      const bool is_class = labels[row] >= 0 && labels[row] < length;
      loss[row] = is_class ? rest - (source(row * length + labels[row]) - shift) : std::numeric_limits<C>::quiet_NaN();
    });
  }
};

/// dx = g[row] (exp(x - lse) - [column == label])
template <class Source, class T>
struct reverse_cross_entropy_body : row_groups<compute_type<T>, row_lanes<T>, Source::leaves> {
  using C = compute_type<T>;
  static constexpr int lanes = row_lanes<T>;
  Source source;
  const std::int64_t* labels;
  const C* lse;
  const T* g_of_loss;
  T* dx;
  bool add;
  bool whole;

  reverse_cross_entropy_body(const Source& x, const std::int64_t* label, const C* parts, const T* gradient, T* to,
                             index_t count, index_t length, bool adds)
      : row_groups<C, lanes, Source::leaves>(count, length, 0),
        source(x.in_rows(lanes, count, length)),
        labels(label),
        lse(parts),
        g_of_loss(gradient),
        dx(to),
        add(adds),
        whole(reinterpret_cast<std::uintptr_t>(to) % 16 == 0 && (count == 1 || length % lanes == 0)) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      if (!there) return;
      const index_t length = this->n;
      const C shift = lse[2 * row], rest = lse[2 * row + 1], scale = g_of_loss[row];
      T* const to = dx + row * length;
      team.each(source_row<lanes, Source>(source, row * length), [&](index_t column, int valid, auto x) {
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) {
          const C exponent = (x.value[i] - shift) - rest;
          x.value[i] = (column + i == labels[row] ? math::expm1(exponent) : math::exp(exponent)) * scale;
        }
        write_chunk<T, lanes>(to + column, whole && valid == lanes, valid, sizeof(T), add, x);
      });
    });
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::cross_entropy_op, D> {
  template <class T, class Epilogue, class E>
  static tensor<compute_type<T>, 1, D> forward(ops::cross_entropy_op, const tensor<T, 1, D>& loss, const Epilogue*,
                                               const E& x, const tensor<std::int64_t, 1, D>& labels) {
    check_indices({"cross_entropy", "label"}, labels, x.shape()[1]);
    const auto lse = tensor<compute_type<T>, 1, D>::uninitialized({{2 * loss.numel()}});
    if (loss.numel() == 0) return lse;
    const cuda_impl::cross_entropy_body<cuda_impl::source_for<E>, T> body(cuda_impl::source_of(x), access::data(labels),
                                                                          access::data(loss), access::data(lse),
                                                                          x.shape()[0], x.shape()[1]);
    cuda_impl::launch_on<D>({"cross_entropy", x.shape()}, body, body.launch());
    return lse;
  }
  template <class Backward>
  static void reverse(ops::cross_entropy_op, const Backward& b) {
    const auto& x = b.template operand<0>();
    const auto& labels = b.template operand<1>();
    const auto dx = b.template place_of<0>();
    if (dx.to.numel() == 0) return;
    using T = element_of<decltype(dx.to)>;
    const cuda_impl::reverse_cross_entropy_body<cuda_impl::source_for<bare<decltype(x)>>, T> body(
        cuda_impl::source_of(x), access::data(labels), access::data(b.saved), access::data(b.gradient()),
        access::data(dx.to), x.shape()[0], x.shape()[1], dx.add);
    cuda_impl::launch_on<D>({"backward of cross_entropy", x.shape()}, body, body.launch());
  }
};

}  // namespace sinter::detail
