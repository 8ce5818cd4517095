// sinter/cpu/machine.hpp: runs a lowered kernel over linear arrays, one vector of elements at a time.
#pragma once

#include "sinter/cpu/loop.hpp"
#include "sinter/expr/kernel.hpp"

namespace sinter::cpu_impl {

template <class T>
using vector = math::simd<compute_type<T>, lanes>;

/// A row_end in vectors.
template <class T>
struct last_step {
  vector<T> shift, scale, rest;
  SINTER_INLINE explicit last_step(const row_end& end)
      : shift(static_cast<compute_type<T>>(end.shift)),
        scale(static_cast<compute_type<T>>(end.scale)),
        rest(static_cast<compute_type<T>>(end.rest)) {}
  SINTER_INLINE vector<T> operator()(vector<T> x) const { return (x - shift) * scale - rest; }
};

/// Has the compiler not merge what made a value with what follows: -(a * b - c) as one instruction has zeros of another
/// sign.
template <class Registers>
SINTER_INLINE void set_apart([[maybe_unused]] Registers& x) {
  if constexpr (!Registers::single) {
    set_apart(x.lo);
    set_apart(x.hi);
  } else {
#if defined(EIGEN_VECTORIZE_AVX512)
    asm("" : "+v"(x.v));
#elif defined(EIGEN_VECTORIZE_SSE)
    asm("" : "+x"(x.v));
#endif
  }
}

/// The machine of expr/kernel.hpp for CPU vectors. Arrays have constant size and constant indices, so that they live in
/// registers. Where `Plain` no operand repeats, and the result overwrites what is there and goes past the caches.
template <int Inputs, int Outputs, bool Plain>
struct vector_machine {
  const void* in[std::size_t{Inputs > 0 ? Inputs : 1}];
  index_t in_mask[std::size_t{Inputs > 0 ? Inputs : 1}];
  void* out[std::size_t{Outputs > 0 ? Outputs : 1}];
  index_t out_mask[std::size_t{Outputs > 0 ? Outputs : 1}];
  bool out_add[std::size_t{Outputs > 0 ? Outputs : 1}];
  bool out_stream[std::size_t{Outputs > 0 ? Outputs : 1}];  ///< overwrites what is there and goes past the caches
  bool out_wide[std::size_t{Outputs > 0 ? Outputs : 1}];    ///< a sum of narrow elements, gathered in float
  index_t i = 0;
  index_t first = 0;
  row_end made;

  SINTER_INLINE explicit vector_machine(const kernel_args& a) : first(a.first) {
    for (int s = 0; s < Inputs; ++s) {
      in[s] = a.in[s];
      in_mask[s] = a.in_mask[s];
    }
    for (int s = 0; s < Outputs; ++s) {
      out[s] = a.out[s];
      out_mask[s] = a.out_mask[s];
      out_add[s] = a.out_add[s];
      out_stream[s] = a.stream && !a.out_add[s];
      out_wide[s] = a.out_size[s] == sizeof(float);
    }
    if (a.made != nullptr) made = *a.made;
  }

  template <int S, class T>
  SINTER_INLINE vector<T> load() const {
    return math::read<lanes>(static_cast<const T*>(in[S]) + (Plain ? i : i & in_mask[S]));
  }
  template <int S, class T>
  SINTER_INLINE vector<T> load_made() const {
    vector<T> value = last_step<T>(made)(load<S, compute_type<T>>());
    set_apart(value.r);
    if constexpr (!narrow_element<T>) return value;
    alignas(64) T rounded[lanes];  // as the op's result alone is
    math::write(rounded, value);
    return math::read<lanes>(static_cast<const T*>(rounded));
  }
  template <class T>
  SINTER_INLINE vector<T> literal(compute_type<T> x) const {
    return vector<T>(x);
  }
  template <int O, class T, class V>
  SINTER_INLINE void put(const V& v) const {
    T* p = static_cast<T*>(out[O]) + i;
    if constexpr (floating_element<T>) {
      if (Plain || out_stream[O]) return math::write_past_caches(p, v);
      math::write(p, v);
    } else {
      v.store(p);
    }
  }
  SINTER_INLINE index_t index() const { return first + i; }
  template <int S, class T, class V>
  SINTER_INLINE void accumulate(const V& g) const {
    if constexpr (narrow_element<T>) {
      if (!Plain && out_wide[S]) return accumulate<S, float>(g);
    }
    if (Plain || out_stream[S]) return math::write_past_caches(static_cast<T*>(out[S]) + i, vector<T>(g));
    T* p = static_cast<T*>(out[S]) + (i & out_mask[S]);
    if (out_add[S]) math::write(p, math::read<lanes>(p) + vector<T>(g));
    else math::write(p, vector<T>(g));
  }
};

template <class Pass, bool Plain>
SINTER_IN_KERNEL void run_vectors(const void* plan, const kernel_args& a) {
  const Pass pass{*static_cast<const typename Pass::plan_type*>(plan)};
  vector_machine<Pass::inputs, Pass::outputs, Plain> m(a);
  const index_t n = a.n;  // the compiler cannot know that the results do not lie over it
  for (; m.i < n; m.i += lanes) pass(m);
}

/// A pass of expr/kernel.hpp over the elements, a multiple of `lanes`; prepared_loop sees to the rest. Masks and
/// branches between the reads cost up to a sixth of a large pass with few operands: it has a loop without them. For
/// several results that loop would take the compiler as long again.
template <class Pass>
SINTER_KERNEL void run_pass(const void* plan, const kernel_args& a) {
  if constexpr (Pass::inputs <= 4 && Pass::outputs == 1)
    if (a.plain) return run_vectors<Pass, true>(plan, a);
  run_vectors<Pass, false>(plan, a);
}

template <class K, class T>
inline constexpr kernel_fn forward_kernel = &run_pass<sinter::detail::kernel::forward_pass<K, T>>;
template <class Roots>
inline constexpr kernel_fn roots_kernel = &run_pass<sinter::detail::kernel::roots_pass<Roots>>;
template <class K, class T>
inline constexpr kernel_fn reverse_kernel = &run_pass<sinter::detail::kernel::reverse_pass<K, T>>;

}  // namespace sinter::cpu_impl
