// sinter/ops/row_op.hpp: ops that need all of a row for each of its elements: softmax, layer_norm and their
// relatives.
#pragma once

#include "sinter/math/scalar.hpp"
#include "sinter/ops/detail/kernel_op.hpp"

namespace sinter {

namespace ops {

/// Base of an op along an axis (see is_row_op). An op whose rows are more than one axis replaces row_length() and
/// has_rows_side_by_side().
struct row_op : kernel_op {
  static constexpr unsigned grad_uses[1] = {uses::result};
  template <device D>
  static constexpr bool has_kernels_on = true;
  static constexpr take takes(int) { return take::formula; }
  static constexpr bool takes_epilogue = true;
  static constexpr bool by_rows = true;
  static constexpr bool saves_row_factor = false;  ///< does reverse need a number of each row?
  /// One number a row, if any.
  template <class T, device D>
  using saves = tensor<compute_type<T>, 1, D>;

  int axis;

  explicit constexpr row_op(int a) : axis(a) {}
  template <int R>
  const extents<R>& shape(const extents<R>& x) const {
    return x;
  }
  /// Of the shape of x, here and below.
  template <int R>
  index_t row_length(const extents<R>& x) const {
    return x[axis];
  }
  /// Are rows neighbouring elements of a dense tensor? Otherwise they lie along `axis`.
  template <int R>
  bool has_rows_side_by_side(const extents<R>&) const {
    return axis == R - 1;
  }
  template <class A>
  static constexpr auto mistake() {
    return floating_of_rank<1, max_rank, A>();
  }
};

/// An op along an axis: a kernel op derived from row_op whose formula stands once, for all backends, in the words of
/// math/vocabulary.hpp and of the row that a backend hands it.
template <class Op>
concept is_row_op = sinter::detail::is_derived<Op, row_op> && is_kernel_op<Op> &&
                    // forward(r), of an r that is_forward_row.
                    sinter::detail::has_forward<Op> &&
                    // reverse(r), of an r that is_reverse_row.
                    sinter::detail::has_reverse<Op>;

/// True; for a class that is no row op, an error that names what is missing.
template <class Op>
constexpr bool check_row_op() {
  constexpr bool forward = sinter::detail::has_forward<Op>, reverse = sinter::detail::has_reverse<Op>;
  static_assert(forward, "sinter: a row op needs its formula, 'forward(r)'; see include/sinter/ops/row_op.hpp");
  static_assert(reverse, "sinter: a row op needs its derivative, 'reverse(r)'; see include/sinter/ops/row_op.hpp");
  return check_kernel_op<Op>();
}

}  // namespace ops

namespace detail {

/// f of vectors of a row; backends whose vectors are arrays of numbers overload it.
template <class F, class... V>
SINTER_WORD auto map_row(const F& f, const V&... v) {
  return f(v...);
}

/// f of values of a row, element by element.
template <class F, class V>
struct mapped_values {
  F f;
  V v;
  template <class... Place>
  SINTER_WORD auto operator()(Place... at) const {
    return map_row(f, v(at...));
  }
};
template <class F, class V, class W>
struct paired_values {
  F f;
  V v;
  W w;
  template <class... Place>
  SINTER_WORD auto operator()(Place... at) const {
    return map_row(f, v(at...), w(at...));
  }
};

/// The tensor with `axis` moved to the end; the same call on its own result moves it back.
template <class Tensor>
Tensor swap_to_end(const Tensor& t, int axis) {
  if constexpr (Tensor::rank >= 2) return t.transpose(axis, -1);
  else return t;
}

/// The kernels of a row op, of the passes over rows that a backend has. Rows are n neighbours each in dense tensors; an
/// operand of rows() may be a formula.
///   Passes::rows(op, n, x, to, saved, epilogue)             `saved` is empty, or has room for a number of each row
///   Passes::reverse_rows(op, n, y, g, saved, dx, add)
/// Optional, for rows along an axis that is not the last: they are worked on where they lie. Else they are moved.
///   Passes::takes_columns(shape, axis)                      whether these are
///   Passes::columns(op, x, to, saved), Passes::reverse_columns(op, y, g, saved, dx, add)
template <class Op, device D, class Passes>
struct row_kernels {
  static_assert(ops::check_row_op<Op>());
  static constexpr bool has_columns = requires(extents<2> shape) { Passes::takes_columns(shape, 0); };

  template <class T, int R, class Epilogue, class E>
  static tensor<compute_type<T>, 1, D> forward(const Op& op, const tensor<T, R, D>& to, const Epilogue* after,
                                               const E& x) {
    tensor<compute_type<T>, 1, D> saved;
    const index_t n = op.row_length(to.shape());
    if constexpr (Op::saves_row_factor)
      saved = tensor<compute_type<T>, 1, D>::uninitialized({{n > 0 ? to.numel() / n : 0}});
    if (op.has_rows_side_by_side(to.shape())) {
      Passes::rows(op, n, x, to, saved, after);
    } else {
      const auto now = eval(untrack(x));
      if constexpr (has_columns) {
        if (Passes::takes_columns(to.shape(), op.axis)) {
          Passes::columns(op, now.contiguous(), to, saved);
          return saved;
        }
      }
      const auto moved = swap_to_end(now, op.axis).contiguous();
      const auto out = tensor<T, R, D>::uninitialized(moved.shape());
      Passes::rows(op, n, moved, out, saved, no_epilogue<D>);
      write(swap_to_end(out, op.axis), to);
    }
    return saved;
  }

  template <class Backward>
  static void reverse(const Op& op, const Backward& b) {
    const auto place = b.template place_of<0>();
    const index_t n = op.row_length(place.to.shape());
    if (op.has_rows_side_by_side(place.to.shape()))
      return Passes::reverse_rows(op, n, b.result().contiguous(), b.gradient().contiguous(), b.saved, place.to,
                                  place.add);
    if constexpr (has_columns) {
      if (Passes::takes_columns(place.to.shape(), op.axis))
        return Passes::reverse_columns(op, b.result().contiguous(), b.gradient().contiguous(), b.saved, place.to,
                                       place.add);
    }
    const auto g = swap_to_end(b.gradient(), op.axis).contiguous();
    const auto y = swap_to_end(b.result(), op.axis).contiguous();
    const auto dx = bare<decltype(g)>::uninitialized(g.shape());
    Passes::reverse_rows(op, n, y, g, b.saved, dx, false);
    write_or_add(swap_to_end(dx, op.axis), place.to, place.add);
  }
};

}  // namespace detail

namespace ops {

template <class F, class V>
SINTER_WORD sinter::detail::mapped_values<F, V> over(const V& v, const F& f) {
  return {f, v};
}
template <class F, class V, class W>
SINTER_WORD sinter::detail::paired_values<F, V, W> over(const V& v, const W& w, const F& f) {
  return {f, v, w};
}

/// A shift that leaves exp(x - shift) free of overflow, and of inf - inf.
template <class C>
SINTER_WORD C row_shift(C max) {
  return math::select(max == -std::numeric_limits<math::element_t<C>>::infinity(), C(0), max);
}
/// The sum of exp(x - shift).
template <class C>
struct shifted_sum {
  C shift, sum;
};
/// Values of a row, and their sum.
template <class V, class C>
struct values_and_sum {
  V values;
  C sum;
};
/// The last step of a row: (value - shift) * scale - rest.
template <class C>
struct last_step {
  C shift = C(0), scale = C(1), rest = C(0);
};

/// A row of a forward pass, as a backend hands it to a row op: a vector unit's on the host, a group of threads' on a
/// GPU.
///
/// The threads of several rows meet in all words that go over a row, and in any_row(); on the host the lanes of a
/// vector may be rows, whose numbers are then vectors too (value_type). So no `if` asks for a number of a row:
/// math::select chooses, and work for some rows only stands behind if (r.any_row(b)), where every row does it.
template <class R>
concept is_forward_row = requires(const R& r, typename R::value_type number) {
  // The values of the row. `over(v, f)` and `over(v, w, f)` are f of values, element by element, evaluated where they
  // are used.
  r.x();
  // How many there are.
  { r.count() } -> std::same_as<typename R::value_type>;
  // v, evaluated now where there is room for a row; and whether there always is, without asking r.keeps().
  r.keep(r.x());
  { R::always_keeps } -> std::convertible_to<bool>;
  // Numbers: the sum, the largest, the first.
  { r.sum(r.x()) } -> std::same_as<typename R::value_type>;
  { r.max(r.x()) } -> std::same_as<typename R::value_type>;
  { r.first(r.x()) } -> std::same_as<typename R::value_type>;
  // {values, sum} in one pass: what keep() and sum() give.
  r.keep_and_sum(r.x()).values;
  { r.keep_and_sum(r.x()).sum } -> std::convertible_to<typename R::value_type>;
  // {shift, sum}: the largest of v, and the sum of exp(v - shift).
  { r.sum_of_exp(r.x()) } -> std::same_as<shifted_sum<typename R::value_type>>;
  // Is a condition true for this row, or for one that is worked on beside it?
  { r.any_row(number < number) } -> std::same_as<bool>;
  // The result of the row, (v - shift) * scale - rest, which forward returns; v was kept.
  r.finish(r.keep(r.x()), last_step<typename R::value_type>{});
  // Keeps a number of the row for reverse; see saves_row_factor.
  r.save(number);
};

/// A row of a backward pass.
template <class R>
concept is_reverse_row = requires(const R& r) {
  // The values of the result, and of its gradient.
  r.result();
  r.gradient();
  // How many there are.
  { r.count() } -> std::same_as<typename R::value_type>;
  // Numbers: the sum, the largest.
  { r.sum(r.gradient()) } -> std::same_as<typename R::value_type>;
  { r.max(r.result()) } -> std::same_as<typename R::value_type>;
  // The number that forward saved.
  { r.saved() } -> std::same_as<typename R::value_type>;
  // Makes v the gradient of the operand.
  r.put(r.gradient());
};

/// The mean of the row's values. They are added up as distances from the first, so that equal ones have themselves as
/// mean.
template <class Row, class V>
SINTER_WORD auto mean_of(const Row& r, const V& v) {
  const auto first = r.first(v);
  return first + r.sum(over(v, [first](auto a) SINTER_INLINE_LAMBDA { return a - first; })) / r.count();
}

/// x / sqrt(mean(x^2) + eps), of x - shift: saves and returns the factor. Squares beyond the range of the type are
/// those of x / m.
template <class Row, class V, class C>
SINTER_WORD C root_mean_square_factor(const Row& r, const V& v, C shift, C eps) {
  using limits = std::numeric_limits<math::element_t<C>>;
  const C power =
      r.sum(over(v, [shift](auto a) SINTER_INLINE_LAMBDA { return (a - shift) * (a - shift); })) / r.count();
  C factor = C(1) / math::sqrt(power + eps);
  const auto in_range = math::logical_and(power + eps > limits::min(), power < limits::infinity());
  if (r.any_row(math::logical_not(in_range))) {
    const C most = r.max(over(v, [shift](auto a) SINTER_INLINE_LAMBDA { return math::abs(a - shift); }));
    const C scale = C(1) / most;
    const C part =
        r.sum(over(v, [=](auto a) SINTER_INLINE_LAMBDA { return ((a - shift) * scale) * ((a - shift) * scale); })) /
        r.count();
    const auto scales = math::logical_and(most > C(0), most < limits::infinity());
    factor = math::select(math::logical_and(scales, math::logical_not(in_range)),
                          scale / math::sqrt(part + (eps * scale) * scale), factor);
  }
  r.save(factor);
  return factor;
}

}  // namespace ops
}  // namespace sinter
