// sinter/cpu/loop.hpp: runs one compiled kernel over an index space, with threads and partial sums.
//
// A kernel sees only linear arrays: operand s of element i is in[s][i & mask[s]], with mask 0 for a value that repeats.
// detail/prepared_loop.hpp handles everything that makes real operands different from that (strides, broadcasting,
// tails), without knowing the formula. Work is cut into tasks by sizes alone, so results do not depend on the number of
// threads.
#pragma once

#include <algorithm>
#include <cstring>

#include "sinter/core/arena.hpp"
#include "sinter/cpu/detail/prepared_loop.hpp"
#include "sinter/cpu/threads.hpp"

namespace sinter::cpu_impl {

namespace detail {

using sinter::detail::temporary;

/// n values of a trivial type in arena memory.
template <class T>
class temporary_array {
 public:
  explicit temporary_array(index_t n) : memory_(static_cast<std::size_t>(n) * sizeof(T)) {}
  T* data() const { return static_cast<T*>(memory_.data()); }
  T& operator[](index_t i) const { return data()[i]; }

 private:
  temporary<cpu> memory_;
};

/// Elements between the first and the last that output s touches.
inline index_t span_of(const loop& l, const operand& o) {
  index_t n = 1;
  for (int d = 0; d < l.rank; ++d) n += (l.shape[d] - 1) * o.strides[d];
  return n;
}

/// Zeroes what an output that sums over empty axes shows, given that its own extents are dense.
inline void clear(const loop& l, const operand& o) {
  index_t n = 1;
  for (int d = 0; d < l.rank; ++d) n *= o.strides[d] == 0 ? 1 : l.shape[d];
  if (n > 0) std::memset(o.data, 0, static_cast<std::size_t>(n * o.size));
}

/// to (+)= the sum of `count` parts of n elements, in their order.
template <class T>
void add_partials(T* to, const T* parts, index_t n, index_t count, bool add) {
  for (index_t i = 0; i < n; ++i) {
    T sum = parts[i];
    for (index_t k = 1; k < count; ++k) sum += parts[k * n + i];
    to[i] = add ? to[i] + sum : sum;
  }
}

}  // namespace detail

/// The sums of an output that tasks share: elements of one task's part, 0 for an output that needs none.
struct partial_sums {
  index_t elements[max_operands] = {};
  index_t total = 0;

  partial_sums(const prepared_loop& p) {
    const loop& l = p.shape();
    for (int s = 0; s < l.outputs; ++s)
      if (p.reducing(s) && !p.reduces_only_rows(s)) total += elements[s] = detail::span_of(l, l.out[s]);
  }

  /// f(output, elements) for those that need parts.
  template <class F>
  void each(int outputs, const F& f) const {
    for (int s = 0; s < outputs; ++s)
      if (elements[s] > 0) f(s, elements[s]);
  }
};

namespace detail {

/// The same of the elements of an output.
inline void add_partials(const operand& o, char* to, const char* parts, index_t n, index_t count, bool add) {
  const auto run = [=]<class T>(T* of) { add_partials(of, reinterpret_cast<const T*>(parts), n, count, add); };
  if (o.size == 4) run(reinterpret_cast<float*>(to));
  else run(reinterpret_cast<double*>(to));
}

/// Elements per task: whole rows where rows are short, pieces of rows otherwise. It follows from the shape alone.
SINTER_SHARED index_t task_size(const prepared_loop& p, const partial_sums& sums);

/// Elements whose sums are added one by one: some hundred terms where there is a choice.
inline index_t piece_size(const partial_sums& sums) {
  const index_t few = std::clamp<index_t>(256 * sums.total, 2048, prepared_loop::sum_segment);
  return std::max(few, 16 * sums.total);
}

/// The tasks gather their sums apart, in pieces: rounding errors grow with the number of terms that are added one by
/// one.
SINTER_SHARED void run_with_partials(const prepared_loop& p, const partial_sums& sums, index_t grain, index_t tasks,
                                     thread_pool& pool);

#if SINTER_DEFINES

SINTER_SHARED index_t task_size(const prepared_loop& p, const partial_sums& sums) {
  const index_t total = p.numel();
  index_t grain = total < serial_below ? total : task_elements;
  if (sums.total > 0) {
    index_t tasks = total / (8 * sums.total);
    if (tasks > 256) tasks = 256;
    if (tasks < 1) tasks = 1;
    const index_t wanted = (total + tasks - 1) / tasks;
    if (grain < wanted) grain = wanted;
  }
  if (grain >= total) return total;
  if (p.by_rows() && (p.inner() < grain || (p.any_reducing() && p.shape().rank > 1)))
    return (grain + p.inner() - 1) / p.inner() * p.inner();
  if (p.by_rows()) return grain / lanes * lanes;
  return (grain + p.unit() - 1) / p.unit() * p.unit();
}

SINTER_SHARED void run_with_partials(const prepared_loop& p, const partial_sums& sums, index_t grain, index_t tasks,
                                     thread_pool& pool) {
  const loop& l = p.shape();
  const index_t total = p.numel();
  index_t piece = piece_size(sums);
  const index_t unit = p.unit();
  piece = piece > grain ? grain : (piece + unit - 1) / unit * unit;
  index_t offset[max_operands] = {};
  index_t bytes = 0;
  sums.each(l.outputs, [&](int s, index_t n) {
    offset[s] = bytes;
    bytes += (n * l.out[s].size * tasks + 63) / 64 * 64;
  });
  const temporary<cpu> memory(static_cast<std::size_t>(bytes));
  char* const parts = static_cast<char*>(memory.data());
  pool.parallel_for(tasks, [&](index_t t) {
    char* base[max_operands];
    char* sum_of_task[max_operands];
    bool add[max_operands];
    for (int s = 0; s < l.outputs; ++s) {
      base[s] = l.out[s].data;
      add[s] = l.out[s].add;
    }
    char* of_piece = scratch<2>(static_cast<std::size_t>(sums.total) * 8);
    sums.each(l.outputs, [&](int s, index_t n) {
      sum_of_task[s] = parts + offset[s] + t * n * l.out[s].size;
      base[s] = of_piece;
      of_piece += (n * l.out[s].size + 7) / 8 * 8;
      add[s] = true;
    });
    const index_t begin = t * grain;
    const index_t end = begin + grain < total ? begin + grain : total;
    for (index_t at = begin; at < end; at += piece) {
      sums.each(l.outputs,
                [&](int s, index_t n) { std::memset(base[s], 0, static_cast<std::size_t>(n * l.out[s].size)); });
      p.run(at, at + piece < end ? at + piece : end, base, add);
      sums.each(l.outputs,
                [&](int s, index_t n) { add_partials(l.out[s], sum_of_task[s], base[s], n, 1, at > begin); });
    }
  });
  sums.each(l.outputs, [&](int s, index_t n) {
    add_partials(l.out[s], l.out[s].data, parts + offset[s], n, tasks, l.out[s].add);
  });
}

#endif  // SINTER_DEFINES

}  // namespace detail

/// Runs a whole loop. Outputs that sum over an axis are gathered in one part per task and added in task order.
SINTER_SHARED void run_loop(const loop& source, thread_pool& pool, bool stream = false);

#if SINTER_DEFINES

SINTER_SHARED void run_loop(const loop& source, thread_pool& pool, bool stream) {
  prepared_loop p(source);
  const loop& l = p.shape();
  const index_t total = p.numel();
  if (total == 0) {
    for (int s = 0; s < l.outputs; ++s)  // sums of nothing
      if (!l.out[s].add) detail::clear(l, l.out[s]);
    return;
  }
  if (stream) p.set_stream();
  const partial_sums sums(p);
  const index_t grain = detail::task_size(p, sums);
  const index_t tasks = (total + grain - 1) / grain;
  if (sums.total > 0 && (tasks > 1 || total > detail::piece_size(sums)))
    return detail::run_with_partials(p, sums, grain, tasks, pool);

  char* base[max_operands];
  bool add[max_operands];
  for (int s = 0; s < l.outputs; ++s) {
    base[s] = l.out[s].data;
    add[s] = l.out[s].add;
  }
  // The sums of a single task go straight to their place, which starts from zero.
  sums.each(l.outputs, [&](int s, index_t n) {
    if (!add[s]) std::memset(base[s], 0, static_cast<std::size_t>(n * l.out[s].size));
    add[s] = true;
  });
  pool.parallel_for(tasks,
                    [&](index_t t) { p.run(t * grain, (t + 1) * grain < total ? (t + 1) * grain : total, base, add); });
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl
