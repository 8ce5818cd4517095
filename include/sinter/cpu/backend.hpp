// sinter/cpu/backend.hpp: evaluation on the host devices.
#pragma once

#include "sinter/cpu/count.hpp"
#include "sinter/cpu/epilogue.hpp"
#include "sinter/cpu/gemm.hpp"
#include "sinter/cpu/index.hpp"
#include "sinter/cpu/instruction_set.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/cpu/reduce.hpp"
#include "sinter/cpu/row_lanes.hpp"
#include "sinter/cpu/scan.hpp"
#include "sinter/cpu/sort.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::cpu_impl {

using sinter::detail::matrix_ref;

SINTER_SHARED loop make_loop(kernel_fn fn, const void* plan, const any_shape& shape, const leaf_ref* leaves, int inputs,
                             operand* in);

/// One output that is a dense array, wherever the range that is run starts.
inline void set_dense_output(loop& l, const sink_ref& sink, operand* out) {
  l.outputs = 1;
  l.out = out;
  out[0] = to_operand(sink, 0);
  sinter::detail::row_major_strides(l.shape, l.rank, out[0].strides);
}

/// A pass as its callers know it, so that they are a few instructions each: there is one for every statement.
struct map_call {
  kernel_fn fn;
  const void* plan;
  const leaf_ref* leaves;
  int inputs;
  const sink_ref* sinks;
  int outputs;
  bool counts;  ///< does the formula ask for the number of an element?
};

template <int Most>
void run_map_of(const map_call& call, const any_shape& shape, thread_pool& pool) {
  operand in[std::size_t{Most}], out[std::size_t{Most}];
  const auto [fn, plan, leaves, inputs, sinks, outputs, counts] = call;
  loop l = make_loop(fn, plan, shape, leaves, inputs, in);
  l.outputs = outputs;
  l.out = out;
  bool stream = outputs > 0 && l.numel() * sinks[0].element_size >= stream_bytes;
  for (int s = 0; s < outputs; ++s) out[s] = to_operand(sinks[s], shape.rank);
  for (int s = 0; s < inputs; ++s) stream = stream && in[s].data != out[0].data;
  if (!counts) order_by_memory(l);
  run_loop(l, pool, stream);
}

inline void run_map(const map_call& call, const any_shape& shape, thread_pool& pool) {
  constexpr int few = 8;
  if (call.inputs <= few && call.outputs <= few) run_map_of<few>(call, shape, pool);
  else run_map_of<max_operands>(call, shape, pool);
}

/// c (+)= a b; c is dense along its rows.
template <class T>
void run_matmul(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate, const epilogue* e,
                thread_pool& pool) {
  gemm_args<T> args{};
  args.m = c.rows;
  args.n = c.columns;
  args.k = a.columns;
  args.a = static_cast<const T*>(a.data);
  args.a_row = a.row_stride;
  args.a_col = a.column_stride;
  args.b = static_cast<const T*>(b.data);
  args.b_row = b.row_stride;
  args.b_col = b.column_stride;
  args.c = static_cast<T*>(c.data);
  args.ldc = c.row_stride;
  args.accumulate = accumulate;
  args.after = tiles_of(e);
  gemm(args, pool);
}

/// Calls f(loop) with the loop that produces the values of an expression without points, as dense rows.
template <class E, class F>
void with_producer(const E& e, const F& f) {
  using K = sinter::detail::lowered<false, E>;
  using T = compute_type<element_of<E>>;
  const sinter::detail::leaves_of<E> leaves(e);
  operand in[pass_of<K::leaves + 1>];
  operand out[1];
  const K plan = sinter::detail::lower<false>(e);
  loop l = make_loop(forward_kernel<K, T>, &plan, {e.shape().data(), E::rank}, leaves, K::leaves, in);
  sink_ref dense;
  dense.element_size = sizeof(T);
  set_dense_output(l, dense, out);
  f(l, sinter::detail::kernel::is_leaf<K> && !narrow_element<element_of<E>>);
}

#if SINTER_DEFINES

SINTER_SHARED loop make_loop(kernel_fn fn, const void* plan, const any_shape& shape, const leaf_ref* leaves, int inputs,
                             operand* in) {
  loop l;
  l.rank = shape.rank;
  for (int d = 0; d < l.rank; ++d) l.shape[d] = shape.data[d];
  l.inputs = inputs;
  l.in = in;
  l.fn = fn;
  l.plan = plan;
  for (int s = 0; s < inputs; ++s) in[s] = to_operand(leaves[s], shape);
  return l;
}

#endif  // SINTER_DEFINES

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct backend<D> {
  using epilogue = cpu_impl::epilogue;
  template <class T, class K, int>
  using fused_epilogue = cpu_impl::fused_epilogue<T, K>;

  static cpu_impl::thread_pool& pool() { return cpu_impl::pool_of<D>(); }
  /// Null where nothing was chosen.
  static const char* chosen_instructions() { return chosen_instruction_set(); }

  /// out = K(leaves) over the index space `shape`.
  template <class T, class K>
  static void map(const K& plan, const any_shape& shape, const leaf_ref* leaves, const sink_ref& out) {
    static_assert(cpu_impl::pass_of<K::leaves + 2> > 0);
    cpu_impl::run_map({cpu_impl::forward_kernel<K, T>, &plan, leaves, K::leaves, &out, 1, kernel::counts<K>}, shape,
                      pool());
  }

  /// Several results in one pass over `shape`; see kernel::roots.
  template <class Roots>
  static void map_many(const Roots& plan, const any_shape& shape, const leaf_ref* leaves, const sink_ref* sinks) {
    static_assert(cpu_impl::pass_of<Roots::leaves> >= 0 && cpu_impl::pass_of<Roots::outputs> > 0);
    cpu_impl::run_map({cpu_impl::roots_kernel<Roots>, &plan, leaves, Roots::leaves, sinks, Roots::outputs, false},
                      shape, pool());
  }

  /// out = R folded over the values of K along the axes marked in `reduced`.
  template <class R, class T, class K>
  static void reduce(const K& plan, const any_shape& shape, const leaf_ref* leaves, const bool* reduced,
                     typename R::result* out, const epilogue* e) {
    cpu_impl::operand in[cpu_impl::pass_of<K::leaves + 1>];
    cpu_impl::operand to[1];
    cpu_impl::loop l = cpu_impl::make_loop(cpu_impl::forward_kernel<K, T>, &plan, shape, leaves, K::leaves, in);
    sink_ref dense;
    dense.element_size = sizeof(T);
    cpu_impl::set_dense_output(l, dense, to);
    cpu_impl::reduce<T>(R{}, kernel::is_leaf<K>, l, reduced, out, pool(), e);
  }

  /// Leaves the state of R after every element along `axis` in `out`. An epilogue is for the last axis only.
  template <class R, class E, class Out>
  static void scan(const E& e, int axis, const Out& out, const epilogue* after) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::scan<R, element_of<E>>(l, is_leaf, axis, out, pool(), after);
    });
  }

  /// The first values.shape()[axis] elements along `axis`, in order, and their positions; there is at least one.
  template <class E, class T, int R>
  static void sort(const E& e, int axis, bool descending, const tensor<T, R, D>& values,
                   const tensor<std::int64_t, R, D>& indices) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::sort(l, is_leaf, around_axis(e.shape().data(), R, axis), descending, values.shape()[axis],
                     values.data(), indices.data(), pool());
    });
  }

  /// counts[v] += how often e, of int64 elements, is v; other values do not count.
  template <class E>
  static void count(const E& e, const tensor<std::int64_t, 1, D>& counts) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::count(l, is_leaf, counts.data(), counts.numel(), pool());
    });
  }

  // Row-persistent ops; `to` is dense and its rows are n neighbours each. `saved` is empty or has a value per row.
  template <class Op, class E, class T, auto S>
  static void rows(const Op& op, index_t n, const E& e, const tensor<T, S, D>& to,
                   const tensor<compute_type<T>, 1, D>& saved, const epilogue* after) {
    const index_t count = n > 0 ? to.numel() / n : 0;
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      if (cpu_impl::are_short_rows(n))
        cpu_impl::run_short_rows(l, is_leaf, op, access::data(to), access::data(saved), count, n, after, pool());
      else cpu_impl::run_rows(l, is_leaf, op, access::data(to), access::data(saved), count, n, after, pool());
    });
  }
  template <class Op, class T, auto S>
  static void reverse_rows(const Op& op, index_t n, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                           const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    const index_t count = n > 0 ? y.numel() / n : 0;
    if (cpu_impl::are_short_rows(n))
      cpu_impl::reverse_short_rows(op, access::data(y), access::data(g), access::data(saved), access::data(dx), count,
                                   n, add, pool());
    else
      cpu_impl::reverse_rows(op, access::data(y), access::data(g), access::data(saved), access::data(dx), count, n, add,
                             pool());
  }
  /// Are rows along an axis that is not the last worked on where they lie? The tensors are then dense.
  template <int R>
  static bool takes_columns(const extents<R>& shape, int axis) {
    return cpu_impl::are_columns(around_axis(shape.data(), R, axis));
  }
  template <class Op, class T, auto S>
  static void columns(const Op& op, const tensor<T, S, D>& x, const tensor<T, S, D>& to,
                      const tensor<compute_type<T>, 1, D>& saved) {
    cpu_impl::run_columns(op, around_axis(x.shape().data(), x.rank, op.axis), access::data(x), access::data(to),
                          access::data(saved), pool());
  }
  template <class Op, class T, auto S>
  static void reverse_columns(const Op& op, const tensor<T, S, D>& y, const tensor<T, S, D>& g,
                              const tensor<compute_type<T>, 1, D>& saved, const tensor<T, S, D>& dx, bool add) {
    cpu_impl::reverse_columns(op, around_axis(y.shape().data(), y.rank, op.axis), access::data(y), access::data(g),
                              access::data(saved), access::data(dx), add, pool());
  }

  /// Throws index_error unless all n values lie in [0, extent).
  static void check_range(const char* op, const char* what, const std::int64_t* values, index_t n, index_t extent) {
    for (index_t i = 0; i < n; ++i)
      if (values[i] < 0 || values[i] >= extent) refuse_index(op, what, values[i], i, extent);
  }

  template <class T, class U, int R>
  static cpu_impl::gather_shape gather_shape_of(const tensor<T, R, D>& x, int axis,
                                                const tensor<std::int64_t, R, D>& index, const tensor<U, R, D>& y) {
    cpu_impl::gather_shape g;
    g.rank = R;
    g.axis = axis;
    for (int d = 0; d < R; ++d) {
      g.shape[d] = index.shape()[d];
      g.x_strides[d] = x.strides()[d];
      g.index_strides[d] = index.strides()[d];
      g.y_strides[d] = y.strides()[d];
    }
    return g;
  }
  template <class T, int R>
  static void gather(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                     const tensor<T, R, D>& y) {
    cpu_impl::gather(gather_shape_of(x, axis, index, y), x.data(), index.data(), y.data(), pool());
  }
  template <class T, class U, int R>
  static void scatter_add(const tensor<T, R, D>& x, int axis, const tensor<std::int64_t, R, D>& index,
                          const tensor<U, R, D>& y, index_order) {
    cpu_impl::scatter_add(gather_shape_of(x, axis, index, y), x.data(), index.data(), y.data(), pool());
  }

  template <class E, class T>
  static void cross_entropy(const E& e, const tensor<std::int64_t, 1, D>& labels, const tensor<T, 1, D>& loss,
                            const tensor<compute_type<T>, 1, D>& lse) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::run_cross_entropy<T>(l, is_leaf, labels.data(), loss.data(), lse.data(), e.shape()[0], e.shape()[1],
                                     pool());
    });
  }
  template <class E, class T>
  static void reverse_cross_entropy(const E& e, const tensor<std::int64_t, 1, D>& labels,
                                    const tensor<compute_type<T>, 1, D>& lse, const tensor<T, 1, D>& g,
                                    const tensor<T, 2, D>& dx, bool add) {
    cpu_impl::with_producer(e, [&](cpu_impl::loop& l, bool is_leaf) {
      cpu_impl::reverse_cross_entropy<T>(l, is_leaf, labels.data(), lse.data(), g.data(), dx.data(), e.shape()[0],
                                         e.shape()[1], add, pool());
    });
  }

  /// outputs = K(inputs), element by element, over arrays of n: what an optimizer does to a parameter.
  template <class K>
  static void update(const K& plan, index_t n, const flat_values (&inputs)[K::leaves],
                     const flat_values (&outputs)[K::outputs]) {
    [[maybe_unused]] const index_t step = 1;  // nvcc 13 does not see its use
    leaf_ref in[K::leaves];
    sink_ref out[K::outputs];
    for (int i = 0; i < K::leaves; ++i) in[i] = {inputs[i].data, &n, &step, 1, inputs[i].element_size};
    for (int i = 0; i < K::outputs; ++i) {
      out[i].data = outputs[i].data;
      out[i].strides[0] = 1;
      out[i].element_size = outputs[i].element_size;
    }
    map_many(plan, {&n, 1}, in, out);
  }

  template <class T>
  static void matmul(const matrix_ref& a, const matrix_ref& b, const matrix_ref& c, bool accumulate,
                     const epilogue* e) {
    for (index_t i = 0; i < c.batches; ++i)
      cpu_impl::run_matmul<T>(a.of_batch<T>(i), b.of_batch<T>(i), c.of_batch<T>(i), accumulate, e, pool());
  }

  /// Adds up the gradients of K's tracked leaves. `inputs` holds the leaves, the gradient of the result and, where
  /// kernel::reads_result<K>, the result.
  template <class T, bool = false, class K>
  static void reverse(const K& plan, const any_shape& shape, const leaf_ref* inputs, const sink_ref* sinks) {
    constexpr int n = K::leaves + 1 + (kernel::reads_result<K> ? 1 : 0);
    static_assert(cpu_impl::pass_of<n> > 0);
    cpu_impl::run_map({cpu_impl::reverse_kernel<K, T>, &plan, inputs, n, sinks, K::sinks, kernel::counts<K>}, shape,
                      pool());
  }
};

static_assert(is_backend<backend<cpu>, cpu>);

}  // namespace sinter::detail
