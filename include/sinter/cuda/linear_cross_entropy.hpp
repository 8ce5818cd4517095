// sinter/cuda/linear_cross_entropy.hpp: the losses of rows of scores, and their slopes, on GPUs: the threads of a group
// share a row.
#pragma once

#include "sinter/cuda/rows.hpp"
#include "sinter/ops/linear_cross_entropy.hpp"

namespace sinter::cuda_impl {

/// A row of scores, to which a bias is added where there is one.
template <class T>
struct row_of_scores {
  using C = compute_type<T>;
  memory_row<T> x, bias;

  SINTER_WORD auto operator()(int c, int valid) const {
    auto v = x(c, valid);
    if (bias.data == nullptr) return v;
    const auto b = bias(c, valid);
    SINTER_UNROLL
    for (int i = 0; i < row_lanes<T>; ++i) v.value[i] += b.value[i];
    return v;
  }
  SINTER_WORD C at(index_t i) const {
    const C v = static_cast<C>(x.data[i]);
    return bias.data == nullptr ? v : v + static_cast<C>(bias.data[i]);
  }
};

/// What both passes over rows of scores know of them.
template <class T>
struct class_rows_body : row_groups<compute_type<T>, row_lanes<T>> {
  using C = compute_type<T>;
  static constexpr int lanes = row_lanes<T>;
  ops::class_loss what;
  const T *scores, *bias;
  const std::int64_t* labels;
  bool whole;

  class_rows_body(const ops::class_loss& w, const ops::class_loss::rows<T>& s, const std::int64_t* label, const T* to,
                  int rooms)
      : row_groups<C, lanes>(s.count, s.n, rooms), what(w), scores(s.scores), bias(s.bias), labels(label) {
    const auto bits = reinterpret_cast<std::uintptr_t>(scores) | reinterpret_cast<std::uintptr_t>(bias) |
                      reinterpret_cast<std::uintptr_t>(to);
    whole = bits % 16 == 0 && s.n % lanes == 0;
  }
  SINTER_WORD row_of_scores<T> row_at(index_t row) const { return {{scores + row * this->n, whole}, {bias, whole}}; }
  SINTER_WORD bool is_class(std::int64_t label) const { return label >= 0 && label < this->n; }
};

/// The loss of each row, and in parts[2 row] shift and rest of logsumexp; see ops::class_loss.
template <class T>
struct class_losses_body : class_rows_body<T> {
  using C = compute_type<T>;
  T* loss;
  C* parts;

  class_losses_body(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels, T* to,
                    C* kept)
      : class_rows_body<T>(what, s, labels, nullptr, 1), loss(to), parts(kept) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      const row_of_scores<T> scores = this->row_at(row);
      const auto v = team.keep(scores);
      const auto [shift, sum] = sum_of_exp<C>(team, v);
      const C most = shift, rest = math::log(sum);
      const C below = this->what.smooths() ? team.sum(over(v, [=](C a) { return a - most; })) : C(0);
      if (!there || team.place != 0) return;
      parts[2 * row] = most;
      parts[2 * row + 1] = rest;
      const std::int64_t label = this->labels[row];
      if (label == this->what.ignored) loss[row] = T(0);
      else if (!this->is_class(label)) loss[row] = static_cast<T>(std::numeric_limits<C>::quiet_NaN());
      else loss[row] = static_cast<T>(this->what.loss(most, rest, scores.at(label), below, this->n));
    });
  }
};

/// to = g[row] times the derivative; see ops::class_loss.
template <class T>
struct class_slopes_body : class_rows_body<T> {
  using C = compute_type<T>;
  static constexpr int lanes = row_lanes<T>;
  const C* parts;
  const T* g_of_loss;
  T* to;

  class_slopes_body(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                    const C* kept, const T* gradient, T* out)
      : class_rows_body<T>(what, s, labels, out, 0), parts(kept), g_of_loss(gradient), to(out) {}

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    this->each_row(g, [&](index_t row, const auto& team, bool there) {
      if (!there) return;
      const std::int64_t label = this->labels[row];
      const C shift = parts[2 * row], rest = parts[2 * row + 1];
      const C scale = label == this->what.ignored ? C(0) : static_cast<C>(g_of_loss[row]);
      const C factor = this->what.factor(shift, rest), share = this->what.template share<C>(this->n);
      T* const out = to + row * this->n;
      team.each(this->row_at(row), [&](index_t column, int valid, auto v) {
        SINTER_UNROLL
        for (int i = 0; i < lanes; ++i) {
          const C slope = column + i == label ? this->what.slope_at_label(shift, rest, v.value[i], this->n)
                                              : math::exp((v.value[i] - shift) - rest) * factor - share;
          v.value[i] = label == this->what.ignored ? C(0) : slope * scale;
        }
        write_chunk<T, lanes>(out + column, this->whole && valid == lanes, valid, sizeof(T), false, v);
      });
    });
  }
};

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::class_loss, D> {
  using indices = tensor<std::int64_t, 1, D>;

  template <class T>
  static void losses(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                     T* loss, compute_type<T>* parts) {
    if (s.count == 0) return;
    const cuda_impl::class_losses_body<T> body(what, s, labels, loss, parts);
    cuda_impl::launch_on<D>({"linear_cross_entropy", extents<2>{{s.count, s.n}}}, body, body.launch());
  }
  template <class T>
  static void slopes(const ops::class_loss& what, const ops::class_loss::rows<T>& s, const std::int64_t* labels,
                     const compute_type<T>* parts, const T* g, T* to) {
    if (s.count * s.n == 0) return;
    const cuda_impl::class_slopes_body<T> body(what, s, labels, parts, g, to);
    cuda_impl::launch_on<D>({"backward of linear_cross_entropy", extents<2>{{s.count, s.n}}}, body, body.launch());
  }
  static void check_targets(const char* op, const ops::class_loss& what, const indices& labels, index_t n) {
    check_indices({op, "target"}, eval(where(labels != what.ignored, labels, 0)), n);
  }
  template <class T>
  static tensor<T, 0, D> mean_factor(const ops::class_loss& what, const indices& labels) {
    using C = compute_type<T>;
    const auto count = eval(sum(cast<C>(labels != what.ignored)));
    return cast<T>(where(count > 0, static_cast<C>(labels.numel()) / count, C(0)));
  }
};

}  // namespace sinter::detail
