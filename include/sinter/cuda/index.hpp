// sinter/cuda/index.hpp: the bodies that read and add at indices held in a tensor.
#pragma once

#include <utility>

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// One gather of Axes axes, seen as lines along its axis: element c of `y` (or `index`, of the same shape) belongs to
/// element c of `x` with coordinate `axis` replaced by index[c]. Operands 0, 1, 2 of the table are x, index and y.
template <int Axes>
struct gather_lines {
  index_space<outer_axes_of(Axes)> lines;  ///< all other axes, with inner extent 1
  operand_table<3, outer_axes_of(Axes)> at;
  index_t along = 0;
  index_t extent = 0;    ///< of x along the axis
  index_t step[3] = {};  ///< of x, index and y along the axis
};

/// y = x[index]: a thread per element; 0 where there is no such index.
template <class T, int Axes>
struct gather_body {
  gather_lines<Axes> shape;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t total = shape.lines.rows * shape.along;
    const index_t stride = g.blocks() * g.threads();
    for (index_t i = g.block() * g.threads() + g.thread(); i < total; i += stride) {
      const index_t line = i / shape.along, k = i - line * shape.along;
      index_t at[3] = {0, k * shape.step[1], k * shape.step[2]};
      add_row(shape.lines, shape.at, line, at);
      const index_t from = reinterpret_cast<const std::int64_t*>(shape.at.data[1])[at[1]];
      const bool there = from >= 0 && from < shape.extent;
      reinterpret_cast<T*>(shape.at.data[2])[at[2]] =
          there ? reinterpret_cast<const T*>(shape.at.data[0])[at[0] + from * shape.step[0]] : T(0);
    }
  }
};

/// x[index] += y: a thread per line, in order along it, so that the sum does not depend on the schedule.
template <class T, int Axes>
struct scatter_add_body {
  gather_lines<Axes> shape;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t stride = g.blocks() * g.threads();
    for (index_t line = g.block() * g.threads() + g.thread(); line < shape.lines.rows; line += stride) {
      index_t at[3] = {0, 0, 0};
      add_row(shape.lines, shape.at, line, at);
      for (index_t k = 0; k < shape.along; ++k) {
        const index_t to = reinterpret_cast<const std::int64_t*>(shape.at.data[1])[at[1] + k * shape.step[1]];
        if (to < 0 || to >= shape.extent) continue;
        reinterpret_cast<T*>(shape.at.data[0])[at[0] + to * shape.step[0]] +=
            reinterpret_cast<const T*>(shape.at.data[2])[at[2] + k * shape.step[2]];
      }
    }
  }
};

/// x[index] += y where equal indices of a line are neighbours: the thread of the first of them adds all, in order.
template <class T, int Axes>
struct scatter_runs_body {
  gather_lines<Axes> shape;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    const index_t total = shape.lines.rows * shape.along;
    const index_t stride = g.blocks() * g.threads();
    for (index_t i = g.block() * g.threads() + g.thread(); i < total; i += stride) {
      const index_t line = i / shape.along, k = i - line * shape.along;
      index_t at[3] = {0, 0, 0};
      add_row(shape.lines, shape.at, line, at);
      const std::int64_t* const index = reinterpret_cast<const std::int64_t*>(shape.at.data[1]) + at[1];
      const index_t to = index[k * shape.step[1]];
      if (k > 0 && index[(k - 1) * shape.step[1]] == to) continue;
      const T* const y = reinterpret_cast<const T*>(shape.at.data[2]) + at[2];
      T sum = y[k * shape.step[2]];
      for (index_t next = k + 1; next < shape.along && index[next * shape.step[1]] == to; ++next)
        sum += y[next * shape.step[2]];
      reinterpret_cast<T*>(shape.at.data[0])[at[0] + to * shape.step[0]] += sum;
    }
  }
};

/// The first index outside its range that a GPU has met and the host not yet reported, in memory that both see.
struct index_fault {
  const char* op = nullptr;  ///< null: none; this and `what` are literals of the program
  const char* what = nullptr;
  std::int64_t value = 0;
  index_t position = 0;
  index_t extent = 0;
};

/// Notes the first of n values outside [0, extent), unless there is a fault already: one block looks at all.
struct check_range_body {
  const std::int64_t* values;
  index_t n, extent;
  const char* op;
  const char* what;
  index_fault* fault;

  template <class G>
  SINTER_WORD void operator()(const G& g) const {
    index_t* const found = g.template shared<index_t>();
    index_t first = n;
    for (index_t i = g.thread(); i < n; i += g.threads())
      if ((values[i] < 0 || values[i] >= extent) && i < first) first = i;
    found[g.thread()] = first;
    for (int step = g.threads() / 2; step > 0; step /= 2) {
      g.sync();
      if (g.thread() < step && found[g.thread() + step] < found[g.thread()])
        found[g.thread()] = found[g.thread() + step];
    }
    if (g.thread() == 0 && found[0] < n && fault->op == nullptr)
      *fault = {op, what, values[found[0]], found[0], extent};
  }
};

/// Throws index_error if D has met an index out of its range. Does not wait for work that is still to run, but, where
/// there is a fault, for what writes it.
template <device D>
void report_fault() {
  index_fault* const fault = gpu<D>::fault();
  if (static_cast<const char* volatile&>(fault->op) == nullptr) return;
  gpu<D>::synchronize();
  const index_fault found = std::exchange(*fault, index_fault());
  if (found.op == nullptr) return;  // another thread was here first
  sinter::detail::refuse_index(found.op, found.what, found.value, found.position, found.extent,
                               "; " + device_name<D>() + " met it in a statement before this one");
}

}  // namespace sinter::cuda_impl
