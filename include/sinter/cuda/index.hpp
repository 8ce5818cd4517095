// sinter/cuda/index.hpp: the bodies that read and add at indices held in a tensor.
#pragma once

#include "sinter/cuda/backend.hpp"
#include "sinter/ops/gather.hpp"
#include "sinter/ops/sort.hpp"

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

/// y to x[index] by a rule: a thread per line, in order along it, so that the result does not depend on the schedule.
template <class Rule, class T, int Axes>
struct scatter_body {
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
        Rule::apply(reinterpret_cast<T*>(shape.at.data[0])[at[0] + to * shape.step[0]],
                    reinterpret_cast<T*>(shape.at.data[2])[at[2] + k * shape.step[2]]);
      }
    }
  }
};

/// The same where equal indices of a line are neighbours: the thread of the first of them takes all, in order.
template <class Rule, class T, int Axes>
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
      if ((k > 0 && index[(k - 1) * shape.step[1]] == to) || to < 0 || to >= shape.extent) continue;
      T* const y = reinterpret_cast<T*>(shape.at.data[2]) + at[2];
      T value = reinterpret_cast<T*>(shape.at.data[0])[at[0] + to * shape.step[0]];
      for (index_t next = k; next < shape.along && index[next * shape.step[1]] == to; ++next)
        Rule::apply(value, y[next * shape.step[2]]);
      reinterpret_cast<T*>(shape.at.data[0])[at[0] + to * shape.step[0]] = value;
    }
  }
};

/// Notes the first of n values outside [0, extent), unless there is a fault already: one block looks at all.
struct check_range_body {
  const std::int64_t* values;
  index_t n, extent;
  ops::index_check by;
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
    if (g.thread() == 0 && found[0] < n && fault->by.op == nullptr) *fault = {by, values[found[0]], found[0], extent};
  }
};

template <class T, int R, device D>
gather_lines<R> lines_of(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                         const tensor<T, R, D>& y) {
  using sinter::detail::access;
  pass_axes axes(3);
  axes.rank = R;  // the others in order, then an inner axis of one element
  for (int d = 0, to = 0; d < R; ++d) {
    if (d == axis) continue;
    axes.shape[to] = index.shape()[d];
    axes.strides[0][to] = x.strides()[d];
    axes.strides[1][to] = index.strides()[d];
    axes.strides[2][to] = y.strides()[d];
    ++to;
  }
  axes.shape[R - 1] = 1;
  axes.data[0] = reinterpret_cast<char*>(access::data(x));
  axes.data[1] = reinterpret_cast<char*>(access::data(index));
  axes.data[2] = reinterpret_cast<char*>(access::data(y));
  constexpr int outer = outer_axes_of(R);
  return {axes.space<outer>(),
          axes.table<3, outer>(0),
          index.shape()[axis],
          x.shape()[axis],
          {x.strides()[axis], index.strides()[axis], y.strides()[axis]}};
}

}  // namespace sinter::cuda_impl

namespace sinter::detail {

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::gather_op, D> : kernels<ops::picked_op, D> {
  template <class T, int R, class Epilogue>
  static void forward(const ops::gather_op& op, const tensor<T, R, D>& y, const Epilogue*, const tensor<T, R, D>& x,
                      const tensor<std::int64_t, R, D>& index) {
    if (index.numel() == 0) return;
    const cuda_impl::gather_body<T, R> body{cuda_impl::lines_of(x, op.axis, index, y)};
    cuda_impl::launch_on<D>({"gather", index.shape()}, body,
                            {cuda_impl::blocks_for(index.numel(), cuda_impl::block_threads), 0});
  }
};

template <class Rule, device D>
  requires is_cuda_v<D>
struct kernels<ops::scatter_by<Rule>, D> {
  template <class T, int R>
  static void run(const ops::scatter_by<Rule>& op, const tensor<T, R, D>& x, const tensor<std::int64_t, R, D>& index,
                  const tensor<T, R, D>& y) {
    if (index.numel() == 0) return;
    if (op.order == index_order::any && has_few_long_lines(index, op.axis)) return run_sorted(op, x, index, y);
    const cuda_impl::gather_lines<R> lines = cuda_impl::lines_of(x, op.axis, index, y);
    const cuda_impl::work what{"writing at indices", index.shape()};
    if (op.order == index_order::runs)
      cuda_impl::launch_on<D>(what, cuda_impl::scatter_runs_body<Rule, T, R>{lines},
                              {cuda_impl::blocks_for(index.numel(), cuda_impl::block_threads), 0});
    else
      cuda_impl::launch_on<D>(what, cuda_impl::scatter_body<Rule, T, R>{lines},
                              {cuda_impl::blocks_for(lines.lines.rows, cuda_impl::block_threads), 0});
  }

 private:
  /// Would a thread per line leave most of the GPU idle? Lines of one index count as one, as they are sorted once.
  template <int R>
  static bool has_few_long_lines(const tensor<std::int64_t, R, D>& index, int axis) {
    const index_t along = index.shape()[axis];
    index_t lines = 1;
    for (int d = 0; d < R; ++d)
      if (d != axis && index.strides()[d] != 0) lines *= index.shape()[d];
    return along >= 1024 && lines <= 256 && along <= std::numeric_limits<std::uint32_t>::max();
  }
  /// The same result by indices in order, each line's equal ones side by side and still in their order.
  template <class T, int R>
  static void run_sorted(const ops::scatter_by<Rule>& op, const tensor<T, R, D>& x,
                         const tensor<std::int64_t, R, D>& index, const tensor<T, R, D>& y) {
    tensor<std::int64_t, R, D> once = index;
    for (int d = 0; d < R; ++d)
      if (d != op.axis && index.strides()[d] == 0) once = once.slice(d, 0, 1);
    const auto [sorted, places] = sort(once, op.axis);
    const auto from = places.broadcast_to(index.shape());
    const tensor<T, R, D> moved = make_kernel(ops::gather_op("scatter", op.axis), y, from);
    run({op.axis, index_order::runs}, x, sorted.broadcast_to(index.shape()), moved);
    if constexpr (std::is_same_v<Rule, ops::scatter_rule::multiply_and_tell>)
      kernels<ops::scatter_by<ops::scatter_rule::replace>, D>::run({op.axis, index_order::runs}, y, from, moved);
  }
};

template <device D>
  requires is_cuda_v<D>
struct kernels<ops::index_check, D> {
  static void run(const ops::index_check& by, const std::int64_t* values, index_t n, index_t extent) {
    if (capturing() == nullptr) cuda_impl::report_fault<D>();
    if (n == 0) return;
    cuda_impl::launch_on<D>({by.op, &n, 1},
                            cuda_impl::check_range_body{values, n, extent, by, cuda_impl::gpu<D>::fault_address()},
                            {1, sizeof(index_t) * cuda_impl::block_threads});
  }
};

}  // namespace sinter::detail
