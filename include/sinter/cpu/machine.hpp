// sinter/cpu/machine.hpp: runs a lowered kernel over linear arrays, one vector of elements at a time.
#pragma once

#include "sinter/cpu/loop.hpp"
#include "sinter/expr/kernel.hpp"

namespace sinter::cpu_impl {

template <class T>
using vector = math::simd<T, lanes>;

/// The machine of expr/kernel.hpp for CPU vectors. Arrays have constant size and constant indices, so that they live in
/// registers.
template <int Inputs, int Outputs>
struct vector_machine {
  const void* in[Inputs > 0 ? Inputs : 1];
  index_t in_mask[Inputs > 0 ? Inputs : 1];
  void* out[Outputs > 0 ? Outputs : 1];
  index_t out_mask[Outputs > 0 ? Outputs : 1];
  bool out_add[Outputs > 0 ? Outputs : 1];
  index_t i = 0;
  index_t first = 0;
  bool stream = false;

  SINTER_INLINE explicit vector_machine(const kernel_args& a) : first(a.first), stream(a.stream) {
    for (int s = 0; s < Inputs; ++s) {
      in[s] = a.in[s];
      in_mask[s] = a.in_mask[s];
    }
    for (int s = 0; s < Outputs; ++s) {
      out[s] = a.out[s];
      out_mask[s] = a.out_mask[s];
      out_add[s] = a.out_add[s];
    }
  }

  template <int S, class T>
  SINTER_INLINE vector<T> load() const {
    return vector<T>::load(static_cast<const T*>(in[S]) + (i & in_mask[S]));
  }
  template <class T>
  SINTER_INLINE vector<T> literal(T x) const {
    return vector<T>(x);
  }
  template <int O, class T, class V>
  SINTER_INLINE void put(const V& v) const {
    v.store(static_cast<T*>(out[O]) + i);
  }
  SINTER_INLINE index_t index() const { return first + i; }
  template <int S, class T, class V>
  SINTER_INLINE void accumulate(const V& g) const {
    T* p = static_cast<T*>(out[S]) + (i & out_mask[S]);
    if (out_add[S]) (vector<T>::load(p) + vector<T>(g)).store(p);
    else if (stream) vector<T>(g).stream(p);
    else vector<T>(g).store(p);
  }
};

/// Runs `step(machine)` over the elements, a multiple of `lanes`; prepared_loop sees to the rest.
template <int Inputs, int Outputs, class Step>
SINTER_INLINE void sweep(const kernel_args& a, const Step& step) {
  vector_machine<Inputs, Outputs> m(a);
  for (; m.i < a.n; m.i += lanes) step(m);
}

template <class K, class T>
struct forward_step {
  const K& k;
  template <class M>
  SINTER_INLINE void operator()(const M& m) const {
    const auto v = k.template eval<0>(m, sinter::detail::kernel::no_scope{});
    T* to = static_cast<T*>(m.out[0]) + m.i;
    if constexpr (std::is_floating_point_v<T>) {
      if (m.stream) return v.stream(to);
    }
    v.store(to);
  }
};

/// out[0] = K, elementwise.
template <class K, class T>
void forward_kernel(const void* plan, const kernel_args& a) {
  const K k = *static_cast<const K*>(plan);
  sweep<K::leaves, 1>(a, forward_step<K, T>{k});
}

template <class Roots>
struct roots_step {
  const Roots& k;
  template <class M>
  SINTER_INLINE void operator()(const M& m) const {
    k.template run<0, 0>(m);
  }
};

/// Several results in one pass; see kernel::roots.
template <class Roots>
void roots_kernel(const void* plan, const kernel_args& a) {
  const Roots k = *static_cast<const Roots*>(plan);
  sweep<Roots::leaves, Roots::outputs>(a, roots_step<Roots>{k});
}

template <class K, class T>
struct reverse_step {
  const K& k;
  template <class M>
  SINTER_INLINE void operator()(const M& m) const {
    sinter::detail::kernel::no_scope scope;
    const auto g = m.template load<K::leaves, T>();
    if constexpr (sinter::detail::kernel::reads_result<K>) {
      const auto r = k.template forward<0, false>(m, scope, m.template load<K::leaves + 1, T>());
      k.template reverse<0, 0>(m, scope, r, g);
    } else {
      const auto r = k.template forward<0, false>(m, scope);
      k.template reverse<0, 0>(m, scope, r, g);
    }
  }
};

/// Inputs: the leaves, the gradient of the result, and the result where its op's derivative reads it. Outputs: the
/// gradients of the tracked leaves.
template <class K, class T>
void reverse_kernel(const void* plan, const kernel_args& a) {
  const K k = *static_cast<const K*>(plan);
  sweep<K::leaves + 1 + (sinter::detail::kernel::reads_result<K> ? 1 : 0), K::sinks>(a, reverse_step<K, T>{k});
}

}  // namespace sinter::cpu_impl
