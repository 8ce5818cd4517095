// sinter/ops/recurrent.hpp: what recurrent ops share: their operands, their result, and their steps.
#pragma once

#include "sinter/core/sequence_steps.hpp"
#include "sinter/math/scalar.hpp"
#include "sinter/ops/detail/kernel_op.hpp"
#include "sinter/ops/matmul.hpp"

namespace sinter {

struct use_matrices_of_one_floating_point_type;

namespace ops {

/// The rows of a matrix whose elements of a row lie side by side; a stride of 0 repeats one row.
struct matrix_rows {
  void* data;
  index_t stride;  ///< in elements
};

/// Elementwise work on matrices of one shape. kernels<unit_pass, D>::run<F, T>(rows, columns, in, out) calls F::run(x,
/// y) for each place: x are the elements of the F::inputs matrices `in` there, y those of the F::outputs matrices
/// `out`. A place is read in all of them before it is written, so a matrix may be in both.
struct unit_pass {
  template <device D>
  static constexpr bool has_kernels_on = true;
};

/// Base of a recurrence over the steps of packed sequences. Operand 0 has a row for each element of a sequence: what
/// the input adds to the gates. Operand 1 are the weights that the state before is multiplied by. The result has the
/// output of each element, in the same rows, and then the last state of each sequence.
struct recurrent_op : kernel_op {
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr int rank(...) { return 1; }

  sequence_steps steps;

  explicit recurrent_op(sequence_steps s) : steps(std::move(s)) {}

  template <class... A>
  static constexpr auto mistake() {
    using namespace sinter::detail;
    using First = typename first_operand<A...>::type;
    if constexpr (!floating_element<element_of<First>> || !(std::is_same_v<element_of<First>, element_of<A>> && ...))
      return sinter::detail::mistake<operands_of_element_types<element_of<A>...>,
                                     use_matrices_of_one_floating_point_type>{};
    else if constexpr (((rank_of<A> != 2) || ...))
      return sinter::detail::mistake<operands_of_ranks<rank_of<A>...>, use_matrices_of_one_floating_point_type>{};
    else return fitting<element_of<First>>{};
  }

 protected:
  template <class First, class...>
  struct first_operand {
    using type = First;
  };
  /// Errors: shape_error unless `x` has a row for each element, of `gates` pieces of `units`, the weights (rows,
  /// columns) of the state before fit, and a state (sequences, units) is there for each sequence.
  void check_operands(const char* name, const extents<2>& x, const extents<2>& w, index_t gates, index_t units,
                      const extents<2>& state) const {
    using sinter::detail::refuse;
    if (x[0] != steps.rows())
      refuse<shape_error>({name, ": ", x[0], " rows of inputs for steps of ", steps.rows(), " rows"});
    if (x[1] != gates * units)
      refuse<shape_error>(
          {name, ": inputs of shape ", x, " for ", units, " units; a row must have ", gates * units, " elements"});
    if (w[0] != gates * units || w[1] != state[1])
      refuse<shape_error>({name, ": weights of shape ", w, " for ", units, " units and a state of shape ", state,
                           "; they must be (", gates * units, ",", state[1], ")"});
    check_state(name, state);
  }
  void check_state(const char* name, const extents<2>& state) const {
    if (state[0] < steps.sequences())
      sinter::detail::refuse<shape_error>(
          {name, ": a state of shape ", state, " for ", steps.sequences(), " sequences; it must have a row for each"});
  }
};

}  // namespace ops

namespace detail {

/// Rows [first, first + n) of a matrix.
template <class T, device D>
tensor<T, 2, D> rows_of(const tensor<T, 2, D>& x, index_t first, index_t n) {
  return x.slice(0, first, first + n);
}

/// Matrices of a result of rank 1, one behind the other.
template <class V>
class matrices_in {
 public:
  explicit matrices_in(const V& all) : all_(all) {}
  auto next(index_t rows, index_t columns) {
    const index_t from = at_;
    at_ += rows * columns;
    return all_.slice(0, from, at_).reshape({rows, columns});
  }

 private:
  const V& all_;
  index_t at_ = 0;
};

/// Pieces of the columns of a matrix, `units` wide, as operands of a unit_pass.
template <class T, device D>
ops::matrix_rows piece_of(const tensor<T, 2, D>& x, index_t number, index_t units) {
  return {access::data(x) + number * units, x.strides()[0]};
}
template <class T, device D>
ops::matrix_rows piece_of(const tensor<T, 2, D>& x) {
  return {access::data(x), x.strides()[0]};
}

template <class F, class T, device D>
void run_units(index_t rows, index_t columns, const ops::matrix_rows (&in)[F::inputs],
               const ops::matrix_rows (&out)[F::outputs]) {
  if (rows > 0 && columns > 0) kernels<ops::unit_pass, D>::template run<F, T>(rows, columns, in, out);
}

/// The state before each element, in the rows of the outputs; `first` are the states before the first elements.
template <class T, device D>
tensor<T, 2, D> states_before(const ops::recurrent_op& op, const tensor<T, 2, D>& outputs,
                              const tensor<T, 2, D>& first) {
  const auto before = tensor<T, 2, D>::uninitialized(outputs.shape());
  index_t last_row = 0, last_size = 0;
  op.steps.each([&](index_t row, index_t n) {
    const index_t known = n < last_size ? n : last_size;
    if (known > 0) write(rows_of(outputs, last_row, known), rows_of(before, row, known));
    if (known < n) write(rows_of(first, known, n - known), rows_of(before, row + known, n - known));
    last_row = row;
    last_size = n;
  });
  return before;
}

/// A matrix of a gradient that is being made: where it goes, or a place of its own where it is added or nobody asks.
template <class T, device D>
class made_gradient {
 public:
  template <class Backward>
  static made_gradient of_first(const Backward& b, const extents<2>& shape) {
    made_gradient made;
    if (b.template wants<0>()) {
      const auto place = b.template place_of<0>();
      (place.add ? made.added_to_ : made.values) = place.to;
    }
    if (!made.values.defined()) made.values = tensor<T, 2, D>::uninitialized(shape);
    return made;
  }
  void finish() const {
    if (added_to_.defined()) write_or_add(values, added_to_, true);
  }
  tensor<T, 2, D> values;

 private:
  tensor<T, 2, D> added_to_;
};

/// The gradient of operand I (+)= a b.
template <int I, class Backward, class A, class B>
void multiply_into_operand(const Backward& b, const A& x, const B& y) {
  const auto place = b.template place_of<I>();
  multiply_into_gradient(place.to, x, y, place.add);
}
/// The gradient of operand I (+)= x.
template <int I, class Backward, class X>
void write_operand(const Backward& b, const X& x) {
  if (!b.template wants<I>()) return;
  const auto place = b.template place_of<I>();
  write_or_add(x, place.to, place.add);
}

}  // namespace detail
}  // namespace sinter

// The rejections of name(steps, operands...).
#define SINTER_RECURRENT_REJECTIONS(name, op)                                                       \
  SINTER_CHECK_OP(::sinter::ops::check_kernel_op<op>())                                             \
  template <class... A, class Problem = typename ::sinter::detail::kernel_check<op, A...>::problem, \
            class Fix = typename ::sinter::detail::kernel_check<op, A...>::fix>                     \
  void name(const ::sinter::sequence_steps&, A&&...) = delete;
