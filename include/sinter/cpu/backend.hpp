// sinter/cpu/backend.hpp: evaluation on the host devices.
#pragma once

#include "sinter/cpu/machine.hpp"
#include "sinter/expr/backend.hpp"

namespace sinter::cpu_impl {

using sinter::detail::leaf_ref;
using sinter::detail::sink_ref;

/// Results larger than this bypass the cache: they will not be read again before they would have left it.
inline constexpr index_t stream_bytes = index_t{8} << 20;

inline operand to_operand(const leaf_ref& leaf, const index_t* shape, int rank) {
  operand o;
  o.data = static_cast<char*>(leaf.data);
  o.size = leaf.element_size;
  sinter::detail::broadcast_strides(leaf.shape, leaf.strides, leaf.rank, shape, o.strides, rank);
  return o;
}

inline operand to_operand(const sink_ref& sink, int rank) {
  operand o;
  o.data = static_cast<char*>(sink.data);
  o.size = sink.element_size;
  o.add = sink.add;
  for (int d = 0; d < rank; ++d) o.strides[d] = sink.strides[d];
  return o;
}

inline void run_map(kernel_fn fn, const void* plan, const index_t* shape, int rank, const leaf_ref* leaves, int inputs, operand* in,
                    const sink_ref* sinks, int outputs, operand* out, thread_pool& pool) {
  loop l;
  l.rank = rank;
  for (int d = 0; d < rank; ++d) l.shape[d] = shape[d];
  l.inputs = inputs;
  l.outputs = outputs;
  l.in = in;
  l.out = out;
  l.fn = fn;
  l.plan = plan;
  bool stream = outputs > 0 && l.numel() * sinks[0].element_size >= stream_bytes;
  for (int s = 0; s < outputs; ++s) out[s] = to_operand(sinks[s], rank);
  for (int s = 0; s < inputs; ++s) {
    in[s] = to_operand(leaves[s], shape, rank);
    stream = stream && in[s].data != out[0].data;
  }
  run_loop(l, pool, stream);
}

template <device D>
thread_pool& pool_of() {
  if constexpr (std::is_same_v<D, cpu>) return host_pool();
  else return numa_pool(device_ordinal_v<D>);
}

}  // namespace sinter::cpu_impl

namespace sinter::detail {

template <device D>
  requires is_cpu_v<D>
struct backend<D> {
  static cpu_impl::thread_pool& pool() { return cpu_impl::pool_of<D>(); }

  /// out = K(leaves) over the index space `shape`.
  template <class T, class K>
  static void map(const K& plan, const index_t* shape, int rank, const leaf_ref* leaves, const sink_ref& out) {
    cpu_impl::operand in[K::leaves > 0 ? K::leaves : 1];
    cpu_impl::operand to[1];
    cpu_impl::run_map(&cpu_impl::forward_kernel<K, T>, &plan, shape, rank, leaves, K::leaves, in, &out, 1, to, pool());
  }

  /// Adds up the gradients of K's tracked leaves. `inputs` holds the leaves, the gradient of the result and, where
  /// kernel::reads_result<K>, the result.
  template <class T, class K>
  static void reverse(const K& plan, const index_t* shape, int rank, const leaf_ref* inputs, const sink_ref* sinks) {
    constexpr int n = K::leaves + 1 + (kernel::reads_result<K> ? 1 : 0);
    cpu_impl::operand in[n];
    cpu_impl::operand out[K::sinks];
    cpu_impl::run_map(&cpu_impl::reverse_kernel<K, T>, &plan, shape, rank, inputs, n, in, sinks, K::sinks, out, pool());
  }
};

}  // namespace sinter::detail
