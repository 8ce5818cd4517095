// sinter/cpu/backend.hpp: evaluation on the host devices.
#pragma once

#include "sinter/cpu/epilogue.hpp"
#include "sinter/cpu/instruction_set.hpp"
#include "sinter/cpu/machine.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::cpu_impl {

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

}  // namespace sinter::detail
