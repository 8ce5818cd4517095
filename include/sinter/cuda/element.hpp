// sinter/cuda/element.hpp: the value of an expression at one element, for kernels that fold rows or columns of it.
#pragma once

#include "sinter/cuda/space.hpp"

namespace sinter::cuda_impl {

/// An expression K and where its leaves lie; any thread may ask for any element.
template <class K>
struct element_source {
  static constexpr int inputs = K::leaves;

  K plan;
  index_space space;
  operand_table<inputs> in;

  struct machine {
    const element_source& source;
    index_t number;
    index_t at[operand_table<inputs>::size] = {};

    SINTER_WORD machine(const element_source& s, index_t n) : source(s), number(n) {}
    template <int S, class T>
    SINTER_WORD compute_type<T> load() const {
      return reinterpret_cast<const T*>(source.in.data[S])[at[S]];
    }
    template <class T>
    SINTER_WORD compute_type<T> literal(compute_type<T> x) const {
      return x;
    }
    SINTER_WORD index_t index() const { return number; }
  };

  /// Element `number` in row-major order of the space.
  SINTER_WORD auto operator()(index_t number) const {
    machine m(*this, number);
    return value(m);
  }
  /// What the plan makes of the element that a machine has been made for.
  template <class Machine>
  SINTER_WORD auto value(Machine& m) const {
    index_t row = 0, column = m.number;
    if (space.rows > 1) {
      row = quotient(m.number, space.inner, space.by_inner, space.narrow_elements);
      column = m.number - row * space.inner;
      add_row(space, in, row, m.at);
    }
    for (int s = 0; s < inputs; ++s) m.at[s] += column * in.step[s];
    return plan.template eval<0>(m, sinter::detail::kernel::no_scope{});
  }
};

/// Where the elements of a dense result go.
template <class T>
struct store_element {
  T* out;
  SINTER_WORD void operator()(index_t number, compute_type<T> x) const { out[number] = x; }
};

/// The same with elementwise work on the way: out = K, where the leaves marked in `given` are the element itself.
template <class T, class K>
struct finish_element {
  T* out;
  element_source<K> rest;
  std::uint64_t given = 0;

  struct machine : element_source<K>::machine {
    using base = typename element_source<K>::machine;
    compute_type<T> x;
    std::uint64_t given;

    SINTER_WORD machine(const finish_element& f, index_t which, compute_type<T> element) : base(f.rest, which), x(element), given(f.given) {}
    template <int S, class U>
    SINTER_WORD compute_type<U> load() const {
      if constexpr (std::is_same_v<U, T>) {
        if ((given >> S & 1) != 0) return x;
      }
      return base::template load<S, U>();
    }
  };
  SINTER_WORD void operator()(index_t number, compute_type<T> x) const {
    machine m(*this, number, x);
    out[number] = rest.value(m);
  }
};

/// The source over axes that hold K's leaves.
template <class K>
element_source<K> make_source(const K& plan, pass_axes axes) {
  axes.coalesce();
  return {plan, axes.space(), axes.template table<K::leaves>(0)};
}

}  // namespace sinter::cuda_impl
