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
    index_t row = 0, column = number;
    if (space.rows > 1) {
      row = quotient(number, space.inner, space.by_inner, space.narrow_elements);
      column = number - row * space.inner;
      add_row(space, in, row, m.at);
    }
    for (int s = 0; s < inputs; ++s) m.at[s] += column * in.step[s];
    return plan.template eval<0>(m, sinter::detail::kernel::no_scope{});
  }
};

/// The source over axes that hold K's leaves.
template <class K>
element_source<K> make_source(const K& plan, pass_axes<K::leaves> axes) {
  axes.coalesce();
  return {plan, axes.space(), axes.template table<K::leaves>(0)};
}

}  // namespace sinter::cuda_impl
