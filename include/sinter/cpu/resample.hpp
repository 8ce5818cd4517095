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

/// Makes room for n numbers of elements, as resize does.
SINTER_SHARED void make_room(std::vector<index_t>& at, std::size_t n);

/// What each result along an axis is made of, tap by tap. Where a result has fewer, the rest are -1.
template <class C>
class axis_table {
 public:
  explicit axis_table(const ops::axis_map& m) : out_(static_cast<std::size_t>(m.out)) {
    for (index_t o = 0; m.is_wide() && o < m.out; ++o) {
      const ops::axis_window w = m.window(o);
      taps_ = std::max(taps_, static_cast<std::size_t>(w.end - w.first));
    }
    if (!m.is_wide()) taps_ = m.rule == ops::axis_rule::cubic ? 4 : m.rule == ops::axis_rule::linear ? 2 : 1;
    make_room(at_, taps_ * out_);
    weight_.resize(taps_ * out_);
    for (index_t o = 0; o < m.out; ++o) {
      if (m.is_wide()) {
        const ops::axis_window w = m.window(o);
        const auto n = static_cast<std::size_t>(w.end - w.first);
        for (std::size_t k = 0; k < taps_; ++k) {
          const index_t i = w.first + static_cast<index_t>(k);
          set(k, o, k < n ? i : -1, k < n ? static_cast<C>(m.weight(w, i)) : C(0));
        }
      } else {
        const auto t = m.template taps<C>(o);
        for (std::size_t k = 0; k < taps_; ++k) set(k, o, t.count > 0 ? t.at[k] : -1, t.weight[k]);
      }
    }
  }
  std::size_t taps() const { return taps_; }
  /// Tap k of all results.
  const index_t* at(std::size_t k) const { return at_.data() + k * out_; }
  const C* weight(std::size_t k) const { return weight_.data() + k * out_; }
  /// How many taps result o has.
  std::size_t count(index_t o) const {
    std::size_t k = 0;
    while (k < taps_ && at(k)[o] >= 0) ++k;
    return k;
  }

 private:
  void set(std::size_t k, index_t o, index_t at, C weight) {
    at_[k * out_ + static_cast<std::size_t>(o)] = at;
    weight_[k * out_ + static_cast<std::size_t>(o)] = weight;
  }

  std::size_t taps_ = 1, out_;
  std::vector<index_t> at_;
  std::vector<C> weight_;
};

/// Kernels work line by line: along one axis of pieces, which are the elements of an axis behind it that stays as it
/// is. All other axes are outer ones.
template <class C>
struct resample_plan {
  const ops::resampling& shape;
  int outer;           ///< number of outer axes, and of the line's axis
  ops::axis_map line;  ///< the line's axis
  index_t piece = 1, x_piece = 1, y_piece = 1;
  index_t x_step, y_step;             ///< from piece to piece
  std::vector<axis_table<C>> tables;  ///< of the outer axes and the line's

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
    for (int d = 0; d <= outer; ++d) tables.emplace_back(s.axis[d].is_identity() ? ops::axis_map{} : s.axis[d]);
  }
  const axis_table<C>& table(int d) const { return tables[static_cast<std::size_t>(d)]; }
  /// f(element, weight) for the taps of result o of axis d.
  template <class F>
  void each_tap(int d, index_t o, const F& f) const {
    if (shape.axis[d].is_identity()) return f(o, C(1));
    const axis_table<C>& t = table(d);
    for (std::size_t k = 0; k < t.taps() && t.at(k)[o] >= 0; ++k) f(t.at(k)[o], t.weight(k)[o]);
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

/// f(first, end) for the lines of each task, of n lines of so many elements.
template <class F>
void for_lines(index_t n, index_t elements, thread_pool& pool, const F& f) {
  const index_t grain = std::max<index_t>(16384 / std::max<index_t>(elements, 1), 1);
  pool.parallel_for((n + grain - 1) / grain, [&](index_t task) { f(task * grain, std::min((task + 1) * grain, n)); });
}

/// Lines that are read for one that is written: their offsets, and how much they count.
template <class C>
struct weighted_lines {
  std::vector<index_t> at;
  std::vector<C> weight;
  index_t to = 0;  ///< the offset of the one that is written

  void clear() {
    make_room(at, 1);
    at[0] = 0;
    weight.assign(1, C(1));
    to = 0;
  }
  /// Each of them at each of n places along one more axis: place(k) and its weight(k).
  template <class Place, class Weight>
  void spread(std::size_t n, const Place& place, const Weight& weight_of) {
    const std::size_t count = at.size();
    make_room(at, n * count);
    weight.resize(n * count);
    for (std::size_t k = n; k-- > 0;)
      for (std::size_t j = 0; j < count; ++j) {
        at[k * count + j] = at[j] + place(k);
        weight[k * count + j] = weight[j] * weight_of(k);
      }
  }
};

/// The lines of the operand that line `number` of the result is made of.
template <class C>
void find_sources(const resample_plan<C>& p, index_t number, weighted_lines<C>& lines) {
  lines.clear();
  for (int d = p.outer - 1; d >= 0; --d) {
    const ops::axis_map& m = p.shape.axis[d];
    const index_t o = number % m.out;
    number /= m.out;
    lines.to += o * p.shape.y_strides[d];
    const axis_table<C>& t = p.table(d);
    if (m.is_identity())
      for (index_t& at : lines.at) at += o * p.shape.x_strides[d];
    else
      lines.spread(
          t.count(o), [&](std::size_t k) { return t.at(k)[o] * p.shape.x_strides[d]; },
          [&](std::size_t k) { return t.weight(k)[o]; });
  }
}

/// sums = the weighted sum of lines of n pieces.
template <class T, class C>
void add_lines(const resample_plan<C>& p, const weighted_lines<C>& lines, const T* from, index_t n, index_t step,
               index_t of_piece, C* sums) {
  std::fill_n(sums, n * p.piece, C(0));
  for (std::size_t j = 0; j < lines.at.size(); ++j) {
    const T* const x = from + lines.at[j];
    const C weight = lines.weight[j];
    if (p.is_dense(step, of_piece)) {
      for (index_t i = 0; i < n * p.piece; ++i) sums[i] += weight * static_cast<C>(x[i]);
    } else {
      for (index_t i = 0; i < n; ++i)
        for (index_t k = 0; k < p.piece; ++k)
          sums[i * p.piece + k] += weight * static_cast<C>(x[i * step + k * of_piece]);
    }
  }
}

template <class T, class C>
void copy_pieces(const resample_plan<C>& p, const T* x, T* y, index_t n) {
  if (p.is_dense(p.x_step, p.x_piece) && p.is_dense(p.y_step, p.y_piece)) {
    std::copy_n(x, n * p.piece, y);
    return;
  }
  for (index_t i = 0; i < n; ++i)
    for (index_t k = 0; k < p.piece; ++k) y[i * p.y_step + k * p.y_piece] = x[i * p.x_step + k * p.x_piece];
}

/// y = x along a line where each result is one element, or `fill`.
template <class T, class C>
void pick_line(const resample_plan<C>& p, const weighted_lines<C>& lines, const T* x, T* y, T fill) {
  const bool is_there = !lines.at.empty();
  const T* const from = is_there ? x + lines.at[0] : x;
  T* const to = y + lines.to;
  const auto put = [&](index_t begin, index_t end) {
    const index_t* const at = p.table(p.outer).at(0);
    for (index_t o = begin; o < end; ++o) {
      if (!is_there || at[o] < 0)
        for (index_t k = 0; k < p.piece; ++k) to[o * p.y_step + k * p.y_piece] = fill;
      else if (p.piece == 1) to[o * p.y_step] = from[at[o] * p.x_step];
      else copy_pieces(p, from + at[o] * p.x_step, to + o * p.y_step, 1);
    }
  };
  if (!is_there) return put(0, p.line.out);
  const auto run = p.run_of_line();
  put(0, run.begin);
  if (run.begin < run.end) copy_pieces(p, from + run.from * p.x_step, to + run.begin * p.y_step, run.end - run.begin);
  put(run.end, p.line.out);
}

/// The same where results are sums of elements of `row`, the sum of lines that is made before.
template <int Taps, class T, class C>
void blend_row(const resample_plan<C>& p, const C* row, T* y) {
  const index_t* at[std::size_t{Taps}];
  const C* weight[std::size_t{Taps}];
  for (std::size_t k = 0; k < Taps; ++k) {
    at[k] = p.table(p.outer).at(k);
    weight[k] = p.table(p.outer).weight(k);
  }
  const auto blend = [&](index_t o, index_t i, index_t piece) {
    const auto term = [&](int k) { return weight[k][o] * row[at[k][o] * piece + i]; };
    if constexpr (Taps == 4) return static_cast<T>((term(1) + term(2)) + (term(0) + term(3)));
    else return static_cast<T>(term(0) + term(1));
  };
  if (p.piece == 1 && p.y_step == 1) {
    for (index_t o = 0; o < p.line.out; ++o) y[o] = blend(o, 0, 1);
    return;
  }
  for (index_t o = 0; o < p.line.out; ++o)
    for (index_t i = 0; i < p.piece; ++i) y[o * p.y_step + i * p.y_piece] = blend(o, i, p.piece);
}
/// The same of results with any number of taps.
template <class T, class C>
void blend_windows(const resample_plan<C>& p, const C* row, T* y) {
  for (index_t o = 0; o < p.line.out; ++o)
    for (index_t i = 0; i < p.piece; ++i) {
      double sum = 0;  // of a window of any size
      p.each_tap(p.outer, o, [&](index_t at, C weight) { sum += static_cast<double>(weight * row[at * p.piece + i]); });
      y[o * p.y_step + i * p.y_piece] = static_cast<T>(sum);
    }
}
/// The same from the elements themselves, where most of them are not read.
template <class T, class C>
void blend_few(const resample_plan<C>& p, const weighted_lines<C>& lines, const T* x, T* y) {
  for (index_t o = 0; o < p.line.out; ++o)
    for (index_t i = 0; i < p.piece; ++i) {
      C sum = 0;
      for (std::size_t j = 0; j < lines.at.size(); ++j) {
        C part = 0;
        const T* const from = x + lines.at[j] + i * p.x_piece;
        p.each_tap(p.outer, o, [&](index_t at, C weight) { part += weight * static_cast<C>(from[at * p.x_step]); });
        sum += lines.weight[j] * part;
      }
      y[lines.to + o * p.y_step + i * p.y_piece] = static_cast<T>(sum);
    }
}
template <class T, class C>
void blend_line(const resample_plan<C>& p, const weighted_lines<C>& lines, const T* x, T* y, std::vector<C>& row) {
  if (p.line.in > 4 * p.line.out && !p.line.is_wide()) return blend_few(p, lines, x, y);
  row.resize(static_cast<std::size_t>(p.line.in * p.piece));
  add_lines(p, lines, x, p.line.in, p.x_step, p.x_piece, row.data());
  T* const to = y + lines.to;
  if (p.line.rule == ops::axis_rule::linear) return blend_row<2>(p, row.data(), to);
  if (p.line.rule == ops::axis_rule::cubic) return blend_row<4>(p, row.data(), to);
  if (p.line.is_wide()) return blend_windows(p, row.data(), to);
  for (index_t o = 0; o < p.line.out; ++o)  // the axis stays as it is
    for (index_t i = 0; i < p.piece; ++i)
      to[o * p.y_step + i * p.y_piece] = static_cast<T>(row[static_cast<std::size_t>(o * p.piece + i)]);
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
    weighted_lines<C> lines;
    std::vector<C> row;
    for (; line < end; ++line) {
      find_sources(p, line, lines);
      if constexpr (floating_element<T>) {
        if (blends) {
          blend_line(p, lines, x, y, row);
          continue;
        }
      }
      pick_line(p, lines, x, y, fill);
    }
  });
}

/// Zeroes what counts the readers of n elements. Element i is counted at place i + 1, so that sums of the counts say
/// where its readers begin.
SINTER_SHARED void start_counts(std::vector<std::size_t>& first, std::size_t n);
/// Sums the counts up. Returns where the readers of each element begin.
SINTER_SHARED std::vector<std::size_t> sum_counts(std::vector<std::size_t>& first);

/// For each element of an axis the results that read it, ascending, and how much it counts in them.
template <class C>
struct axis_readers {
  std::vector<std::size_t> first;
  std::vector<index_t> at;
  std::vector<C> weight;

  axis_readers(const resample_plan<C>& p, int d) {
    const ops::axis_map& m = p.shape.axis[d];
    start_counts(first, static_cast<std::size_t>(m.in));
    const auto each = [&](const auto& f) {
      for (index_t o = 0; o < m.out; ++o)
        p.each_tap(d, o, [&](index_t i, C w) { f(static_cast<std::size_t>(i), o, w); });
    };
    each([&](std::size_t i, index_t, C) { ++first[i + 1]; });
    std::vector<std::size_t> next = sum_counts(first);
    make_room(at, first[static_cast<std::size_t>(m.in)]);
    weight.resize(at.size());
    each([&](std::size_t i, index_t o, C w) {
      at[next[i]] = o;
      weight[next[i]++] = w;
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
      weighted_lines<C> lines;
      std::vector<C> row(static_cast<std::size_t>(plan_.line.out * plan_.piece));
      std::vector<C> sums(static_cast<std::size_t>(elements));
      for (; line < end; ++line) {
        find_readers(line, lines);
        add_lines(plan_, lines, g_, plan_.line.out, plan_.y_step, plan_.y_piece, row.data());
        std::fill(sums.begin(), sums.end(), C(0));
        add_row(row.data(), sums.data());
        write_line(sums.data(), dx_ + lines.to);
      }
    });
  }

 private:
  void find_readers(index_t number, weighted_lines<C>& lines) const {
    lines.clear();
    for (int d = plan_.outer - 1; d >= 0; --d) {
      const index_t n = plan_.shape.axis[d].in;
      const auto i = static_cast<std::size_t>(number % n);
      number /= n;
      lines.to += static_cast<index_t>(i) * plan_.shape.x_strides[d];
      const axis_readers<C>& r = readers_[static_cast<std::size_t>(d)];
      const std::size_t first = r.first[i];
      lines.spread(
          r.first[i + 1] - first, [&](std::size_t k) { return r.at[first + k] * plan_.shape.y_strides[d]; },
          [&](std::size_t k) { return r.weight[first + k]; });
    }
  }
  /// The line's own axis.
  void add_row(const C* row, C* sums) const {
    const index_t piece = plan_.piece;
    const auto add = [&](index_t begin, index_t end) {
      const axis_table<C>& t = plan_.table(plan_.outer);
      for (std::size_t k = 0; k < t.taps(); ++k) {
        const index_t* const at = t.at(k);
        const C* const weight = t.weight(k);
        for (index_t o = begin; o < end; ++o)
          if (piece == 1) {
            if (at[o] >= 0) sums[at[o]] += weight[o] * row[o];
          } else if (at[o] >= 0) {
            for (index_t i = 0; i < piece; ++i) sums[at[o] * piece + i] += weight[o] * row[o * piece + i];
          }
      }
    };
    const auto run = plan_.run_of_line();
    add(0, run.begin);
    for (index_t k = 0; k < (run.end - run.begin) * piece; ++k)
      sums[run.from * piece + k] += row[run.begin * piece + k];
    add(run.end, plan_.line.out);
  }
  void write_line(const C* sums, T* dx) const {
    if (plan_.is_dense(plan_.x_step, plan_.x_piece)) {
      for (index_t i = 0; i < plan_.line.in * plan_.piece; ++i)
        dx[i] = static_cast<T>(add_ ? static_cast<C>(dx[i]) + sums[i] : sums[i]);
      return;
    }
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

#if SINTER_DEFINES

SINTER_SHARED void make_room(std::vector<index_t>& at, std::size_t n) { at.resize(n); }
SINTER_SHARED void start_counts(std::vector<std::size_t>& first, std::size_t n) { first.assign(n + 1, 0); }
SINTER_SHARED std::vector<std::size_t> sum_counts(std::vector<std::size_t>& first) {
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  return {first.begin(), first.end() - 1};
}

#endif  // SINTER_DEFINES

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
