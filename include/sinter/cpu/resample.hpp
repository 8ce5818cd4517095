// sinter/cpu/resample.hpp: pad and interpolate on the host.
#pragma once

#include <algorithm>
#include <vector>

#include "sinter/cpu/backend.hpp"
#include "sinter/ops/interpolate.hpp"
#include "sinter/ops/pad.hpp"

namespace sinter::cpu_impl {

/// What elements T are weighted with; no weights of others than floating-point ones are used.
template <class T>
using weight_type = std::conditional_t<floating_element<T>, compute_type<T>, float>;

/// Kernels work line by line: along one axis of pieces, which are the elements of an axis behind it that stays as it
/// is. All other axes are `outer`.
template <class C>
struct resample_plan {
  using taps = ops::axis_taps<C>;

  const ops::resampling& shape;
  int outer;           ///< number of outer axes, and of the line's axis
  ops::axis_map line;  ///< the line's axis
  index_t piece = 1, x_piece = 1, y_piece = 1;
  index_t x_step, y_step;  ///< from piece to piece
  std::vector<taps> tables[max_rank];

  explicit resample_plan(const ops::resampling& s) : shape(s), outer(s.rank - 1) {
    if (outer > 0 && s.axis[outer].is_identity()) {
      piece = s.axis[outer].in;
      x_piece = s.x_strides[outer];
      y_piece = s.y_strides[outer];
      --outer;
    }
    line = s.axis[outer];
    x_step = s.x_strides[outer];
    y_step = s.y_strides[outer];
    for (int d = 0; d <= outer; ++d) {
      const ops::axis_map& m = s.axis[d];
      if (m.is_identity()) continue;
      tables[d].resize(static_cast<std::size_t>(m.out));
      for (index_t o = 0; o < m.out; ++o) tables[d][static_cast<std::size_t>(o)] = m.template taps<C>(o);
    }
  }

  taps taps_of(int d, index_t o) const {
    if (!shape.axis[d].is_identity()) return tables[d][static_cast<std::size_t>(o)];
    taps t;
    t.at[0] = o;
    return t;
  }
  /// Results from `begin` to `end` of the line are its elements from `from` on, one each.
  struct run {
    index_t begin = 0, end = 0, from = 0;
  };
  run run_of_line() const {
    if (line.rule > ops::axis_rule::circular) return {};
    const index_t n = line.rule == ops::axis_rule::circular ? line.period : line.in;
    run r{std::clamp<index_t>(line.before, 0, line.out), std::clamp<index_t>(line.before + n, 0, line.out), 0};
    r.from = r.begin - line.before + (line.rule == ops::axis_rule::circular ? line.first : 0);
    return r;
  }
  bool is_dense(index_t step, index_t of_piece) const { return step == piece && (piece == 1 || of_piece == 1); }
};

/// f(line) for all of n lines of so many elements.
template <class F>
void for_lines(index_t n, index_t elements, thread_pool& pool, const F& f) {
  const index_t grain = std::max<index_t>(16384 / std::max<index_t>(elements, 1), 1);
  pool.parallel_for((n + grain - 1) / grain, [&](index_t task) { f(task * grain, std::min((task + 1) * grain, n)); });
}

/// Where the outer axes of one line lead: offsets in the operand, with weights.
template <class C>
struct outer_taps {
  static constexpr int most = 64;  // 4 taps along three axes
  int count = 1;
  index_t at[most] = {0};
  C weight[most] = {C(1)};
  index_t to = 0;  ///< the offset of the line of the result

  outer_taps(const resample_plan<C>& p, index_t number) {
    for (int d = p.outer - 1; d >= 0; --d) {
      const index_t o = number % p.shape.axis[d].out;
      number /= p.shape.axis[d].out;
      to += o * p.shape.y_strides[d];
      const auto t = p.taps_of(d, o);
      for (int k = t.count - 1; k >= 0; --k)
        for (int j = 0; j < count; ++j) {
          at[k * count + j] = at[j] + t.at[k] * p.shape.x_strides[d];
          weight[k * count + j] = weight[j] * t.weight[k];
        }
      count *= t.count;
    }
  }
};

template <class T, class C>
void copy_pieces(const resample_plan<C>& p, const T* x, T* y, index_t n) {
  if (p.is_dense(p.x_step, p.x_piece) && p.is_dense(p.y_step, p.y_piece)) {
    std::copy_n(x, n * p.piece, y);
    return;
  }
  for (index_t i = 0; i < n; ++i)
    for (index_t k = 0; k < p.piece; ++k) y[i * p.y_step + k * p.y_piece] = x[i * p.x_step + k * p.x_piece];
}

/// y = x along the axes of s where each result is one element, or `fill`.
template <class T, class C>
void pick_line(const resample_plan<C>& p, const outer_taps<C>& outer, const T* x, T* y, T fill) {
  const auto put = [&](index_t from, index_t to) {
    for (index_t o = from; o < to; ++o) {
      const auto t = outer.count > 0 ? p.taps_of(p.outer, o) : ops::axis_taps<C>{0, {}, {}};
      T* const at = y + outer.to + o * p.y_step;
      if (t.count > 0) copy_pieces(p, x + outer.at[0] + t.at[0] * p.x_step, at, 1);
      else
        for (index_t k = 0; k < p.piece; ++k) at[k * p.y_piece] = fill;
    }
  };
  if (outer.count == 0) return put(0, p.line.out);
  const auto run = p.run_of_line();
  put(0, run.begin);
  if (run.begin < run.end)
    copy_pieces(p, x + outer.at[0] + run.from * p.x_step, y + outer.to + run.begin * p.y_step, run.end - run.begin);
  put(run.end, p.line.out);
}

/// The same where results are sums of several elements.
template <class T, class C>
void blend_line(const resample_plan<C>& p, const outer_taps<C>& outer, const T* x, T* y) {
  constexpr index_t together = 64;
  for (index_t o = 0; o < p.line.out; ++o) {
    const auto t = p.taps_of(p.outer, o);
    T* const to = y + outer.to + o * p.y_step;
    for (index_t first = 0; first < p.piece; first += together) {
      C sum[together];
      const index_t n = std::min(together, p.piece - first);
      std::fill_n(sum, n, C(0));
      for (int j = 0; j < outer.count; ++j)
        for (int k = 0; k < t.count; ++k) {
          const C weight = outer.weight[j] * t.weight[k];
          const T* const from = x + outer.at[j] + t.at[k] * p.x_step + first * p.x_piece;
          if (p.x_piece == 1)
            for (index_t i = 0; i < n; ++i) sum[i] += weight * static_cast<C>(from[i]);
          else
            for (index_t i = 0; i < n; ++i) sum[i] += weight * static_cast<C>(from[i * p.x_piece]);
        }
      for (index_t i = 0; i < n; ++i) to[(first + i) * p.y_piece] = static_cast<T>(sum[i]);
    }
  }
}

template <class T>
void resample(const ops::resampling& s, const T* x, T* y, T fill, thread_pool& pool) {
  using C = weight_type<T>;
  const index_t n = s.results();
  if (n == 0) return;
  const resample_plan<C> p(s);
  const index_t elements = p.line.out * p.piece;
  const bool blends = s.blends();
  for_lines(n / elements, elements, pool, [&](index_t line, index_t end) {
    for (; line < end; ++line) {
      const outer_taps<C> outer(p, line);
      if constexpr (floating_element<T>) {
        if (blends) {
          blend_line(p, outer, x, y);
          continue;
        }
      }
      pick_line(p, outer, x, y, fill);
    }
  });
}

/// For each element of an axis the results that read it, ascending, and how much it counts in them.
template <class C>
struct axis_readers {
  std::vector<index_t> first, at;
  std::vector<C> weight;

  axis_readers(const resample_plan<C>& p, int d) {
    const ops::axis_map& m = p.shape.axis[d];
    first.assign(static_cast<std::size_t>(m.in) + 1, 0);
    const auto each = [&](const auto& f) {
      for (index_t o = 0; o < m.out; ++o) {
        const auto t = p.taps_of(d, o);
        for (int k = 0; k < t.count; ++k) f(static_cast<std::size_t>(t.at[k]), o, t.weight[k]);
      }
    };
    each([&](std::size_t i, index_t, C) { ++first[i + 1]; });
    for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
    at.resize(static_cast<std::size_t>(first.back()));
    weight.resize(at.size());
    std::vector<index_t> next(first.begin(), first.end() - 1);
    each([&](std::size_t i, index_t o, C w) {
      const auto place = static_cast<std::size_t>(next[i]++);
      at[place] = o;
      weight[place] = w;
    });
  }
};

/// dx (+)= the sum of g where x is read. Each line of dx is summed alone, in one order.
template <class T>
class resample_gradient {
 public:
  using C = weight_type<T>;

  resample_gradient(const ops::resampling& s, const T* gradient, T* sum, bool add_to_it)
      : plan_(s), g_(gradient), dx_(sum), add_(add_to_it) {
    for (int d = 0; d < plan_.outer; ++d) readers_.emplace_back(plan_, d);
  }
  void run(thread_pool& pool) const {
    const index_t n = plan_.shape.sources(), elements = plan_.line.in * plan_.piece;
    if (n == 0) return;
    for_lines(n / elements, elements, pool, [&](index_t line, index_t end) {
      std::vector<C> sums(static_cast<std::size_t>(elements));
      std::vector<index_t> from;
      std::vector<C> weight;
      for (; line < end; ++line) {
        std::fill(sums.begin(), sums.end(), C(0));
        const index_t to = find_lines(line, from, weight);
        for (std::size_t i = 0; i < from.size(); ++i) add_line(g_ + from[i], weight[i], sums.data());
        write_line(sums.data(), dx_ + to);
      }
    });
  }

 private:
  /// The lines of g that a line of dx is the sum of; returns that one's offset.
  index_t find_lines(index_t number, std::vector<index_t>& from, std::vector<C>& weight) const {
    from.assign(1, 0);
    weight.assign(1, C(1));
    index_t to = 0;
    for (int d = plan_.outer - 1; d >= 0; --d) {
      const index_t i = number % plan_.shape.axis[d].in;
      number /= plan_.shape.axis[d].in;
      to += i * plan_.shape.x_strides[d];
      const axis_readers<C>& r = readers_[static_cast<std::size_t>(d)];
      const auto begin = static_cast<std::size_t>(r.first[static_cast<std::size_t>(i)]);
      const auto count = static_cast<std::size_t>(r.first[static_cast<std::size_t>(i) + 1]) - begin;
      const std::size_t n = from.size();
      from.resize(n * count);
      weight.resize(n * count);
      for (std::size_t k = count; k-- > 0;)
        for (std::size_t j = 0; j < n; ++j) {
          from[k * n + j] = from[j] + r.at[begin + k] * plan_.shape.y_strides[d];
          weight[k * n + j] = weight[j] * r.weight[begin + k];
        }
    }
    return to;
  }
  void add_pieces(const T* g, C weight, C* sums, index_t n) const {
    if (plan_.is_dense(plan_.y_step, plan_.y_piece)) {
      for (index_t i = 0; i < n * plan_.piece; ++i) sums[i] += weight * static_cast<C>(g[i]);
      return;
    }
    for (index_t i = 0; i < n; ++i)
      for (index_t k = 0; k < plan_.piece; ++k)
        sums[i * plan_.piece + k] += weight * static_cast<C>(g[i * plan_.y_step + k * plan_.y_piece]);
  }
  void add_line(const T* g, C weight, C* sums) const {
    const auto add = [&](index_t from, index_t to) {
      for (index_t o = from; o < to; ++o) {
        const auto t = plan_.taps_of(plan_.outer, o);
        for (int k = 0; k < t.count; ++k)
          add_pieces(g + o * plan_.y_step, weight * t.weight[k], sums + t.at[k] * plan_.piece, 1);
      }
    };
    const auto run = plan_.run_of_line();
    add(0, run.begin);
    if (run.begin < run.end)
      add_pieces(g + run.begin * plan_.y_step, weight, sums + run.from * plan_.piece, run.end - run.begin);
    add(run.end, plan_.line.out);
  }
  void write_line(const C* sums, T* dx) const {
    for (index_t i = 0; i < plan_.line.in; ++i)
      for (index_t k = 0; k < plan_.piece; ++k) {
        T& to = dx[i * plan_.x_step + k * plan_.x_piece];
        const C sum = sums[i * plan_.piece + k];
        to = static_cast<T>(add_ ? static_cast<C>(to) + sum : sum);
      }
  }

  resample_plan<C> plan_;
  std::vector<axis_readers<C>> readers_;
  const T* g_;
  T* dx_;
  bool add_;
};

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <std::derived_from<ops::resampling_op> Op, device D>
  requires is_cpu_v<D>
struct kernels<Op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const Op& op, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, R, D>& x) {
    cpu_impl::resample(ops::resampling_of(op, x, y, true), x.data(), y.data(), op.template fill<T>(),
                       backend<D>::pool());
  }
  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto dx = b.template place_of<0>();
    using T = element_of<decltype(dx.to)>;
    const ops::resampling s = ops::resampling_of(op, dx.to, b.gradient(), false);
    cpu_impl::resample_gradient<T>(s, b.gradient().data(), dx.to.data(), dx.add).run(backend<D>::pool());
  }
};

}  // namespace sinter::detail
