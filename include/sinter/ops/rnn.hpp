// sinter/ops/rnn.hpp: the recurrence of a plain recurrent network over packed sequences.
#pragma once

#include "sinter/ops/recurrent.hpp"

namespace sinter {

/// What a plain recurrent layer applies to the sum of input and state.
enum class nonlinearity { tanh, relu };

namespace ops {

/// h' = f(x + h w^T) with f = tanh or relu. J. Elman, Cognitive Science 14 (1990).
template <nonlinearity F>
struct rnn_units {
  /// x: the sum. y: h' twice.
  struct forward {
    static constexpr int inputs = 1, outputs = 2;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      if constexpr (F == nonlinearity::tanh) y[0] = y[1] = math::tanh(x[0]);
      else y[0] = y[1] = math::max(x[0], math::constant<V>(0));
    }
  };
  /// x: h' and two parts of its gradient. y: the gradient of the sum.
  struct reverse {
    static constexpr int inputs = 3, outputs = 1;
    template <class V>
    SINTER_WORD static void run(const V* x, V* y) {
      const V h = x[0], dh = x[1] + x[2], zero = math::constant<V>(0);
      if constexpr (F == nonlinearity::tanh) y[0] = dh * (math::constant<V>(1) - h * h);
      else y[0] = math::select(h > zero, dh, zero);
    }
  };
};

/// x (rows,H), w (H,H), h (N,H) => the outputs (rows,H), the last h (N,H).
struct rnn_op : recurrent_op {
  static constexpr const char* name = "rnn";
  static constexpr unsigned grad_uses[3] = {uses::second | uses::result, uses::second | uses::third | uses::result,
                                            uses::second | uses::result};
  nonlinearity f;

  explicit rnn_op(sequence_steps s, nonlinearity function = nonlinearity::tanh)
      : recurrent_op(std::move(s)), f(function) {}
  extents<1> shape(const extents<2>& x, const extents<2>& w, const extents<2>& h) const {
    check_operands(name, x, w, 1, h[1], h);
    return {{x[0] * h[1] + h.numel()}};
  }
};

}  // namespace ops

namespace detail {

template <device D>
struct kernels<ops::rnn_op, D> {
  template <class T, class Epilogue>
  static nothing_saved forward(const ops::rnn_op& op, const tensor<T, 1, D>& y, const Epilogue*,
                               const tensor<T, 2, D>& x, const tensor<T, 2, D>& w, const tensor<T, 2, D>& h0) {
    const index_t units = h0.shape()[1];
    matrices_in parts(y);
    const tensor<T, 2, D> outputs = parts.next(x.shape()[0], units), h = parts.next(h0.shape()[0], units);
    write(h0, h);
    write(x, outputs);
    const auto w_t = w.transpose();
    op.steps.each([&](index_t row, index_t n) {
      const auto out = rows_of(outputs, row, n), hn = rows_of(h, 0, n);
      multiply_into(hn, w_t, out, true);
      const ops::matrix_rows in[] = {piece_of(out)}, to[] = {piece_of(out), piece_of(hn)};
      if (op.f == nonlinearity::tanh) run_units<ops::rnn_units<nonlinearity::tanh>::forward, T, D>(n, units, in, to);
      else run_units<ops::rnn_units<nonlinearity::relu>::forward, T, D>(n, units, in, to);
    });
    return {};
  }

  template <class Backward>
  static void reverse(const ops::rnn_op& op, const Backward& b) {
    const auto& w = b.template operand<1>();
    using T = element_of<decltype(w)>;
    const index_t units = w.shape()[1], rows = op.steps.rows(), sequences = b.gradient().numel() / units - rows;
    matrices_in parts(b.gradient()), results(b.result());
    const tensor<T, 2, D> dy = parts.next(rows, units), dh = parts.next(sequences, units).clone(),
                          outputs = results.next(rows, units);
    const auto dx = made_gradient<T, D>::of_first(b, {{rows, units}});
    op.steps.each_back([&](index_t row, index_t n) {
      const auto dhn = rows_of(dh, 0, n), to = rows_of(dx.values, row, n);
      const ops::matrix_rows in[] = {piece_of(rows_of(outputs, row, n)), piece_of(dhn), piece_of(rows_of(dy, row, n))},
                             out[] = {piece_of(to)};
      if (op.f == nonlinearity::tanh) run_units<ops::rnn_units<nonlinearity::tanh>::reverse, T, D>(n, units, in, out);
      else run_units<ops::rnn_units<nonlinearity::relu>::reverse, T, D>(n, units, in, out);
      multiply_into(to, w, dhn, false);
    });
    dx.finish();
    write_operand<2>(b, dh);
    if (b.template wants<1>())
      multiply_into_operand<1>(b, dx.values.transpose(), states_before<T, D>(op, outputs, b.template operand<2>()));
  }
};

}  // namespace detail

/// The recurrence of a plain recurrent network alone: h' = tanh(x + h w^T), or relu; x (rows,H) is what the inputs add
/// to each element, h (N,H) the state before the first. Gives the outputs (rows,H), then the last h (N,H), one behind
/// the other in a tensor of rank 1. nn::rnn is the layer. Derivative: backpropagation through time. Errors:
/// shape_error.
///
///     tensor all = rnn_steps(sequence_steps::even(20, 8), linear(x, w_ih, bias), w_hh, h0);
template <class X, class W, class H>
  requires detail::takes_operands<ops::rnn_op, X, W, H>
detail::kernel_of<ops::rnn_op, X, W, H> rnn_steps(const sequence_steps& steps, X&& x, W&& w, H&& h,
                                                  nonlinearity f = nonlinearity::tanh) {
  return detail::make_kernel(ops::rnn_op(steps, f), std::forward<X>(x), std::forward<W>(w), std::forward<H>(h));
}
SINTER_RECURRENT_REJECTIONS(rnn_steps, ops::rnn_op)

}  // namespace sinter
